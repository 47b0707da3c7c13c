#!/usr/bin/env bash
# The one-node Kubernetes that Weir is tested on, from cached binaries, in its own network, mount and PID namespaces.
#   cluster.sh up | down | load IMAGE.tar... | exec CMD... | status
# TESTCLUSTER_CACHE  binaries, made by build.sh           (default: ~/.cache/weir/cluster)
# TESTCLUSTER_STATE  everything a running cluster writes  (default: $TESTCLUSTER_CACHE/state)
# TESTCLUSTER_PORT   API port on the host's 127.0.0.1     (default: 6443)
# TESTCLUSTER_METRICS  when set, up also waits for metrics-server (about 13 s more; it starts in any case)
# After `up`: export KUBECONFIG=$TESTCLUSTER_STATE/kubeconfig
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
C=${TESTCLUSTER_CACHE:-$HOME/.cache/weir/cluster}; S=${TESTCLUSTER_STATE:-$C/state}; PORT=${TESTCLUSTER_PORT:-6443}
export TESTCLUSTER_CACHE=$C TESTCLUSTER_STATE=$S TESTCLUSTER_PORT=$PORT
export PATH=$C/wrap:$C/bin:$PATH
NODE=node1 NODEIP=10.98.0.1 SVC=10.96.0.0/16 SVC1=10.96.0.1 DNS=10.96.0.10 PODS=10.244.0.0/24
CG=testcluster-$PORT
CTRS="cpu cpuacct cpuset memory devices freezer blkio pids systemd unified"

pki() { # DIR: CA, one certificate for each part, and a kubeconfig for each client
  local d=$1; mkdir -p "$d"; cd "$d"
  local new="openssl ecparam -name prime256v1 -genkey -noout -out"
  for ca in ca front; do
    $new $ca.key; openssl req -x509 -new -key $ca.key -subj "/CN=$ca" -days 3650 -out $ca.crt \
      -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,digitalSignature 2>/dev/null
  done
  cert() { # NAME SUBJECT CA EXT
    $new $1.key; openssl req -new -key $1.key -subj "$2" -out $1.csr 2>/dev/null
    printf "$4" > $1.ext
    openssl x509 -req -in $1.csr -CA $3.crt -CAkey $3.key -CAcreateserial -days 3650 -extfile $1.ext -out $1.crt 2>/dev/null
  }
  local cl="extendedKeyUsage=clientAuth"
  cert apiserver /CN=kube-apiserver ca "extendedKeyUsage=serverAuth\nsubjectAltName=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:$SVC1,IP:$NODEIP"
  cert kubelet-server /CN=$NODE ca "extendedKeyUsage=serverAuth\nsubjectAltName=DNS:$NODE,IP:$NODEIP,IP:127.0.0.1"
  cert kubelet-client /O=system:masters/CN=apiserver-kubelet-client ca $cl
  cert front-client /CN=front-proxy-client front $cl
  cert admin /O=system:masters/CN=admin ca $cl
  cert kcm /CN=system:kube-controller-manager ca $cl
  cert scheduler /CN=system:kube-scheduler ca $cl
  cert kubelet /O=system:nodes/CN=system:node:$NODE ca $cl
  cert proxy /CN=system:kube-proxy ca $cl
  openssl genrsa -out sa.key 2048 2>/dev/null; openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null
  kc() { # NAME SERVER > kubeconfig
    local b="base64 -w0"
    cat <<Y
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "$2", certificate-authority-data: $($b ca.crt)}}]
users: [{name: u, user: {client-certificate-data: $($b $1.crt), client-key-data: $($b $1.key)}}]
contexts: [{name: testcluster, context: {cluster: c, user: u}}]
current-context: testcluster
Y
  }
  for u in admin kcm scheduler kubelet proxy; do kc $u https://127.0.0.1:6443 > $u.conf; done
  kc admin https://127.0.0.1:$PORT > "$S/kubeconfig"
  cd - >/dev/null
}

configs() {
  : > "$S/resolv.conf"
  cat > "$S/containerd.toml" <<Y
version = 3
root = "$S/containerd"
state = "/run/containerd"
[grpc]
  address = "$S/containerd.sock"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "localhost/pause:1"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true   # this machine's root has no CAP_SYS_RESOURCE
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["$C/bin/cni"]
    conf_dir = "$S/cni"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = "$C/wrap/runc"
      SystemdCgroup = false
Y
  mkdir -p "$S/cni"
  cat > "$S/cni/10-ptp.conflist" <<Y
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam",
   "ranges": [[{"subnet": "$PODS"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "backend": "nftables", "capabilities": {"portMappings": true}}]}
Y
  cat > "$S/kubelet.yaml" <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /$CG
containerRuntimeEndpoint: unix://$S/containerd.sock
clusterDNS: [$DNS]
clusterDomain: cluster.local
resolvConf: $S/resolv.conf
podLogsDir: $S/podlogs
tlsCertFile: $S/pki/kubelet-server.crt
tlsPrivateKeyFile: $S/pki/kubelet-server.key
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $S/pki/ca.crt}}
authorization: {mode: Webhook}
failSwapOn: false
imageGCHighThresholdPercent: 100
evictionHard: {imagefs.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.inodesFree: "0%"}
nodeStatusUpdateFrequency: 5s
syncFrequency: 10s
registerNode: true
Y
  cat > "$S/proxy.yaml" <<Y
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: $PODS
hostnameOverride: $NODE
clientConnection: {kubeconfig: $S/pki/proxy.conf}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
nftables: {minSyncPeriod: 200ms, syncPeriod: 30s}
Y
}

init() { # runs as PID 1 of the namespaces
  mount --make-rshared /
  mount -t tmpfs tmpfs /run
  mkdir -p "$S/var-up" "$S/var-work"; mount -t overlay overlay -o "lowerdir=/var,upperdir=$S/var-up,workdir=$S/var-work" /var
  mkdir -p /var/lib/kubelet /var/log/pods /var/log/containers /run/netns
  ip link set lo up
  ip link add node0 type veth peer name node0p; ip link set node0p up; ip link set node0 up
  ip addr add $NODEIP/24 dev node0; ip route add default dev node0
  sysctl -qw net.ipv4.ip_forward=1 2>/dev/null || echo 1 > /proc/sys/net/ipv4/ip_forward
  for c in $CTRS; do
    g=/sys/fs/cgroup/$c/$CG; [ -d /sys/fs/cgroup/$c ] || continue; mkdir -p $g
    [ $c = cpuset ] && { cat /sys/fs/cgroup/cpuset/cpuset.cpus > $g/cpuset.cpus; cat /sys/fs/cgroup/cpuset/cpuset.mems > $g/cpuset.mems; }
  done
  local L=$S/log P=$S/pki; mkdir -p "$L"
  run() { local n=$1; shift; (while :; do "$@" || true; sleep 0.3; done) >"$L/$n.log" 2>&1 & }   # restarted when it ends, as a static pod would be
  run etcd etcd --data-dir="$S/etcd" --unsafe-no-fsync --listen-client-urls=http://127.0.0.1:2379 \
    --advertise-client-urls=http://127.0.0.1:2379 --listen-peer-urls=http://127.0.0.1:2380 --log-level=warn
  run apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 --bind-address=0.0.0.0 --secure-port=6443 \
    --advertise-address=$NODEIP --service-cluster-ip-range=$SVC --authorization-mode=Node,RBAC --allow-privileged=true \
    --tls-cert-file=$P/apiserver.crt --tls-private-key-file=$P/apiserver.key --client-ca-file=$P/ca.crt \
    --kubelet-client-certificate=$P/kubelet-client.crt --kubelet-client-key=$P/kubelet-client.key --kubelet-certificate-authority=$P/ca.crt \
    --kubelet-preferred-address-types=InternalIP \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local --service-account-key-file=$P/sa.pub --service-account-signing-key-file=$P/sa.key \
    --requestheader-client-ca-file=$P/front.crt --requestheader-allowed-names=front-proxy-client \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file=$P/front-client.crt --proxy-client-key-file=$P/front-client.key --enable-aggregator-routing=true
  run containerd containerd --config "$S/containerd.toml"
  run controller-manager kube-controller-manager --kubeconfig=$P/kcm.conf --authentication-kubeconfig=$P/kcm.conf --authorization-kubeconfig=$P/kcm.conf \
    --root-ca-file=$P/ca.crt --service-account-private-key-file=$P/sa.key --use-service-account-credentials=true \
    --cluster-signing-cert-file=$P/ca.crt --cluster-signing-key-file=$P/ca.key --leader-elect=false --bind-address=127.0.0.1 \
    --horizontal-pod-autoscaler-sync-period=5s --horizontal-pod-autoscaler-initial-readiness-delay=5s --horizontal-pod-autoscaler-cpu-initialization-period=10s
  run scheduler kube-scheduler --kubeconfig=$P/scheduler.conf --authentication-kubeconfig=$P/scheduler.conf --authorization-kubeconfig=$P/scheduler.conf \
    --leader-elect=false --bind-address=127.0.0.1
  run kubelet kubelet --config="$S/kubelet.yaml" --kubeconfig=$P/kubelet.conf --hostname-override=$NODE --node-ip=$NODEIP --root-dir="$S/kubelet"
  run proxy kube-proxy --config="$S/proxy.yaml"
  run provisioner "$HERE/cluster.sh" __provision
  trap 'exit 0' TERM INT
  while :; do sleep 3600 & wait $! || true; done
}

provision() { # the StorageClass "standard": a directory and a local volume for each claim, gone with the claim
  export KUBECONFIG=$S/pki/admin.conf
  { kubectl get pvc -A -w -o jsonpath='claim {.status.phase} {.spec.storageClassName} {.metadata.uid} {.metadata.namespace} {.metadata.name} {.spec.resources.requests.storage} {.spec.accessModes[0]}{"\n"}' &
    kubectl get pv -w -o jsonpath='volume {.status.phase} {.spec.storageClassName} {.metadata.name}{"\n"}' & wait -n || true; kill $(jobs -p) 2>/dev/null || true; } |   # when one ends, both do, and all begins anew
  while read -r kind phase class id ns name size mode; do
    [ "$class" = standard ] || continue
    case $kind/$phase in
      claim/Pending)
        mkdir -p "$S/volumes/$id"; kubectl create -f - <<Y || true
apiVersion: v1
kind: PersistentVolume
metadata: {name: "$id"}
spec:
  capacity: {storage: "$size"}
  accessModes: ["$mode"]
  storageClassName: standard
  persistentVolumeReclaimPolicy: Retain
  claimRef: {namespace: "$ns", name: "$name", uid: "$id"}
  local: {path: "$S/volumes/$id"}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$NODE]}]}]}}
Y
        ;;
      volume/Released) kubectl delete pv "$id" --wait=false || true; rm -rf "${S:?}/volumes/$id" ;;
    esac
  done
}

forward() { # host 127.0.0.1:PORT -> 127.0.0.1:6443 in the cluster's network
  exec python3 - "$1" "$PORT" <<'Y'
import asyncio, ctypes, os, socket, sys
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[2]))); s.listen(128); s.setblocking(False)
libc = ctypes.CDLL(None, use_errno=True)
if libc.setns(os.open(f"/proc/{sys.argv[1]}/ns/net", os.O_RDONLY), 0x40000000):
    raise OSError(ctypes.get_errno(), "setns")
async def pipe(r, w):
    try:
        while b := await r.read(65536):
            w.write(b); await w.drain()
    except OSError:
        pass
    finally:
        w.close()
async def one(r, w):
    try:
        r2, w2 = await asyncio.open_connection("127.0.0.1", 6443)
    except OSError:
        w.close(); return
    await asyncio.gather(pipe(r, w2), pipe(r2, w))
async def main():
    async with await asyncio.start_server(one, sock=s) as srv:
        await srv.serve_forever()
asyncio.run(main())
Y
}

# A process of this cluster's, not one that merely has its old number.
alive() { [ -s "$S/$1.pid" ] && grep -qzxF "TESTCLUSTER_STATE=$S" "/proc/$(cat "$S/$1.pid")/environ" 2>/dev/null; }
K() { kubectl --kubeconfig "$S/kubeconfig" "$@"; }
until_ok() { local n=$1; shift; for _ in $(seq $((n * 5))); do "$@" >/dev/null 2>&1 && return; sleep 0.2; done; echo "timed out: $*" >&2; return 1; }

up() {
  if alive init && K get --raw /readyz >/dev/null 2>&1; then echo "already up"; return; fi
  down; mkdir -p "$S"; local t0=$(date +%s%N)
  ms() { echo "$(( ($(date +%s%N) - t0) / 1000000 )) ms: $*"; }
  for f in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    echo "$f $(cat /proc/sys/$f)"; done > "$S/sysctls"   # the kubelet sets these: down puts them back
  pki "$S/pki"; configs; ms "certificates and configuration"
  setsid unshare --mount --net --pid --fork --kill-child --mount-proc "$HERE/cluster.sh" __init >"$S/init.log" 2>&1 </dev/null &
  echo $! > "$S/unshare.pid"
  until_ok 10 pgrep -P "$(cat "$S/unshare.pid")"
  pgrep -P "$(cat "$S/unshare.pid")" > "$S/init.pid"
  setsid "$HERE/cluster.sh" __forward "$(cat "$S/init.pid")" >"$S/forward.log" 2>&1 </dev/null &
  echo $! > "$S/forward.pid"
  until_ok 120 K get --raw /readyz; ms "API ready"
  until_ok 60 ctr -a "$S/containerd.sock" version
  load "$C"/images/{pause,busybox,coredns,metrics-server}.tar; ms "base images loaded"
  until_ok 60 K get serviceaccount default
  K apply -f "$HERE/addons.yaml" >/dev/null
  K wait --for=condition=Ready node/$NODE --timeout=120s >/dev/null; ms "node ready"
  K -n kube-system rollout status deploy/coredns --timeout=120s >/dev/null; ms "DNS ready"
  if [ -n "${TESTCLUSTER_METRICS:-}" ]; then K -n kube-system rollout status deploy/metrics-server --timeout=120s >/dev/null; ms "metrics ready"; fi
  echo "export KUBECONFIG=$S/kubeconfig"
}

down() {
  for p in forward init unshare; do if alive $p; then kill -KILL "$(cat "$S/$p.pid")" 2>/dev/null || true; fi; done
  for _ in $(seq 50); do alive init || alive unshare || break; sleep 0.1; done
  if [ -f "$S/sysctls" ]; then while read -r f v; do echo "$v" > /proc/sys/$f 2>/dev/null || true; done < "$S/sysctls"; fi
  for c in $CTRS; do
    [ -d /sys/fs/cgroup/$c/$CG ] && for _ in 1 2 3 4 5; do find /sys/fs/cgroup/$c/$CG -depth -type d -exec rmdir {} + 2>/dev/null && break || sleep 0.2; done
  done
  [ -n "$S" ] && rm -rf "$S"
  return 0
}

load() { # IMAGE.tar...: docker-archive or OCI-archive
  local f e; for f in "$@"; do e=$(ctr -a "$S/containerd.sock" -n k8s.io images import "$f" 2>&1 >/dev/null) || { echo "$f: $e" >&2; return 1; }; done
}

case ${1:-} in
  up) up ;;
  down) down ;;
  load) shift; load "$@" ;;
  exec) shift; exec nsenter --target "$(cat "$S/init.pid")" --net -- "$@" ;;
  status) K get nodes,pods -A -o wide ;;
  __init) init ;;
  __provision) provision ;;
  __forward) forward "$2" ;;
  *) sed -n '2,8p' "$0"; exit 2 ;;
esac
