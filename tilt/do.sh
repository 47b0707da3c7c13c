#!/bin/sh
# The actions of Tilt's buttons. Each also runs by hand: NAMESPACE=weir-dev sh tilt/do.sh kill-edge
set -eu
N=${NAMESPACE:-weir-dev} ROUTER=${ROUTER:-weir}
PYTHON=${PYTHON:-python3}
k() { kubectl -n "$N" "$@"; }
edges() { k get pods -l "app.kubernetes.io/instance=$ROUTER,app.kubernetes.io/component=edge" -o name; }
ready() { k wait "smpr/$ROUTER" --for=condition=Ready --timeout=180s; }

case ${1:-} in
address)
  k get smpr "$ROUTER" -o 'jsonpath={.status.address}{"\n"}' ;;
helm-test)
  # Tilt applies the rendered chart, so Helm knows no release and `helm test` cannot run. Run its Job instead.
  image=$(k get deployment "$ROUTER" -o 'jsonpath={.spec.template.spec.containers[0].image}')
  k delete job "$ROUTER-test" --ignore-not-found --wait
  helm template weir "$(dirname "$0")/../helm/weir" --namespace "$N" --values "$(dirname "$0")/../helm/weir/values-dev.yaml" \
    --set "image.repository=${image%:*}" --set-string "image.tag=${image##*:}" \
    --set fullnameOverride="$ROUTER" --show-only templates/tests/smp.yaml | k apply -f -
  for _ in $(seq 60); do
    state=$(k get job "$ROUTER-test" -o 'jsonpath={.status.succeeded},{.status.failed}')
    [ "$state" = , ] || break
    sleep 2
  done
  k logs "job/$ROUTER-test"
  [ "${state%,*}" = 1 ] ;;
bench)
  # The clients connect through Tilt's port forward, so the result depends on this machine, too.
  fingerprint=$(k get smpr "$ROUTER" -o 'jsonpath={.status.fingerprint}')
  "$PYTHON" -m weir.cli.main bench cycle --address "smp://$fingerprint@127.0.0.1:${SMP_PORT:-5223}" ${BENCH_ARGS:-} ;;
kill-edge)
  edges | head -n 1 | xargs kubectl -n "$N" delete --grace-period=0 --force --wait=false
  ready ;;
kill-redis)
  k delete pod "$ROUTER-redis-0" --grace-period=0 --force
  ready ;;
kill-operator)
  k delete pods -l app.kubernetes.io/component=operator --grace-period=0 --force
  k rollout status deployment -l app.kubernetes.io/component=operator --timeout=180s ;;
delete-children)
  k delete "service/$ROUTER" "deployment/$ROUTER" --wait
  until k get "service/$ROUTER" "deployment/$ROUTER"; do sleep 1; done
  ready ;;
renew-certificate)
  k annotate smpr "$ROUTER" --overwrite "weir.dev/renew-certificate=$(date +%s)"
  k get smpr "$ROUTER" ;;
restart-edges)
  k rollout restart "deployment/$ROUTER"
  k rollout status "deployment/$ROUTER" --timeout=300s ;;
*)
  echo "do.sh address | helm-test | bench | kill-edge | kill-redis | kill-operator | delete-children | renew-certificate | restart-edges" >&2
  exit 2 ;;
esac
