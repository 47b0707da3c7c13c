#!/usr/bin/env bash
# Builds what cluster.sh runs, from the Go module proxy and Debian, into TESTCLUSTER_CACHE (default: ~/.cache/weir/cluster).
# Does nothing when the cache is already made from the same modules, Go and packages.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd); C=${TESTCLUSTER_CACHE:-$HOME/.cache/weir/cluster}
mkdir -p "$C/bin/cni" "$C/wrap" "$C/images" "$C/stamp"
exec 9> "$C/stamp/.lock"; flock 9   # two runs at once: the second finds what the first has made
export PATH=$PATH:/usr/local/go/bin CGO_ENABLED=0 GOWORK=off GOTOOLCHAIN=local GOFLAGS="-buildvcs=false -mod=readonly -trimpath -modcacherw"
K8S=$(sed -n 's/.*k8s.io\/kubernetes \(v[0-9.]*\).*/\1/p' "$HERE/mod/k8s/go.mod" | head -1)
HELM=$(sed -n 's/^\thelm.sh\/helm\/v3 \(v[0-9.]*\).*/\1/p' "$HERE/mod/k8s/go.mod")
CTRD=$(sed -n 's/^\tgithub.com\/containerd\/containerd\/v2 \(v[0-9.]*\).*/\1/p' "$HERE/mod/containerd/go.mod")
LD="-s -w"; minor=$(echo "$K8S" | cut -d. -f2)
for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  LD="$LD -X $p.gitVersion=$K8S -X $p.gitMajor=1 -X $p.gitMinor=$minor -X $p.gitTreeState=clean -X $p.gitCommit=modproxy"; done
LD="$LD -X helm.sh/helm/v3/internal/version.version=$HELM -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=$minor"
LD="$LD -X github.com/containerd/containerd/v2/version.Version=$CTRD"
stamp() { { cat "$@"; echo "$LD"; go version; } | sha256sum | cut -d' ' -f1; }
fresh() { [ -f "$C/stamp/$1" ] && [ "$(cat "$C/stamp/$1")" = "$2" ]; }
TIMEFORMAT="%R s wall, %U s user, %S s system"
step() { # NAME OUTDIR PACKAGE...
  local n=$1 out=$2 st; shift 2; cd "$HERE/mod/${n%%-*}" 2>/dev/null || cd "$HERE/mod/$n"
  st=$(find . -type f | sort | xargs cat | stamp -); if fresh "$n" "$st"; then echo "$n: cached"; return; fi
  echo "$n: building"; time go build -ldflags "$LD" -o "$out/" "$@"; echo "$st" > "$C/stamp/$n"
}
N=github.com/containernetworking/plugins/plugins
step k8s "$C/bin" k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kubelet,kube-proxy,kubectl} go.etcd.io/etcd/server/v3 helm.sh/helm/v3/cmd/helm ./coredns
[ -f "$C/bin/server" ] && mv "$C/bin/server" "$C/bin/etcd"
step k8s-cni "$C/bin/cni" $N/main/{ptp,loopback} $N/meta/portmap $N/ipam/host-local
step containerd "$C/bin" github.com/containerd/containerd/v2/cmd/{containerd,containerd-shim-runc-v2,ctr}
step metrics-server "$C/bin" sigs.k8s.io/metrics-server/cmd/metrics-server

# runc, nft and busybox from Debian bookworm, unpacked into the cache: nothing is installed on the machine.
DEBS="runc nftables libnftables1 libjansson4 libnftnl11 libmnl0 libedit2 libbsd0 libmd0 libtinfo6 libxtables12 libgmp10 libseccomp2 busybox-static"
st=$(echo "$DEBS" | stamp -); if fresh debs "$st"; then echo "debs: cached"; else
  A=$C/apt; mkdir -p "$A"/{lists,cache/archives}/partial "$A"/{debs,parts} "$C/deb"; cp /var/lib/dpkg/status "$A/status"
  cp /etc/apt/sources.list.d/debian.sources "$A/parts/"   # the machine's own Debian source, without its other ones
  printf '%s "%s";\n' Dir::State "$A" Dir::State::lists "$A/lists" Dir::State::status "$A/status" Dir::Cache "$A/cache" \
    Dir::Etc::sourcelist /dev/null Dir::Etc::sourceparts "$A/parts" APT::Sandbox::User root > "$A/apt.conf"
  export APT_CONFIG=$A/apt.conf; apt-get -qq update; (cd "$A/debs" && rm -f ./*.deb && apt-get -qq download $DEBS && for f in *.deb; do dpkg -x "$f" "$C/deb"; done)
  rm -rf "$A"; echo "$st" > "$C/stamp/debs"; echo "debs: unpacked"
fi
for b in nft runc; do
  cat > "$C/wrap/$b" <<Y
#!/bin/sh
D=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")/deb
LD_LIBRARY_PATH=\$D/usr/lib/x86_64-linux-gnu:\$D/lib/x86_64-linux-gnu exec \$D/usr/sbin/$b "\$@"
Y
  chmod +x "$C/wrap/$b"
done

cd "$C/images"; M="python3 $HERE/mkimage.py"
gcc -Os -static -s -o pause "$HERE/mod/pause.c"
$M pause.tar localhost/pause:1 --add pause=/pause --entrypoint '["/pause"]'
$M coredns.tar localhost/coredns:1 --add "$C/bin/coredns=/coredns" --entrypoint '["/coredns"]'
$M metrics-server.tar localhost/metrics-server:1 --add "$C/bin/metrics-server=/metrics-server" --entrypoint '["/metrics-server"]'
mkdir -p bb/tmp bb/etc; echo 'root:x:0:0:root:/:/bin/sh' > bb/etc/passwd
L=(); for c in $("$C/deb/bin/busybox" --list | grep -vx busybox); do L+=(--link "/bin/$c=busybox"); done
$M busybox.tar localhost/busybox:1 --rootfs bb --add "$C/deb/bin/busybox=/bin/busybox" "${L[@]}" --cmd '["/bin/sh"]'
du -sh "$C"
