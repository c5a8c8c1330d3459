#!/bin/sh
# Predicted pipeline times against a known network: ranks in network namespaces of their own, joined by veth pairs and a
# bridge, with 1 Gbit/s and 200 us each way. Root; ends with one line where the kernel lacks what it takes.
#
#     netem.sh PRONY_MPI MPIRUN MODEL [RANKS] [more options of prony-mpi bench]
#
# Prints the predicted and the measured time of a run, as prony-mpi does. On a quiet machine they should lie within 15 %.
set -eu
prony_mpi=$(realpath "$1") mpirun=$2 model=$(realpath "$3") ranks=${4:-4}
if [ $# -lt 4 ]; then shift 3; else shift 4; fi
rate=1gbit delay=200us bridge=prony-br
folder=$(mktemp -d)

end() {
    for i in $(seq 1 "$ranks"); do ip netns del "prony$i" 2>/dev/null || true; done
    ip link del $bridge 2>/dev/null || true
    rm -r "$folder"
}
trap end EXIT

left_out() {
    echo "left out: $1"
    exit 77
}

[ "$(id -u)" = 0 ] || left_out "this takes root"
for tool in ip tc; do
    command -v $tool >/dev/null || left_out "no $tool (Debian: iproute2)"
done
ip link add $bridge type bridge 2>/dev/null || left_out "the kernel has no bridges"
ip addr add 10.213.0.254/24 dev $bridge
ip link set $bridge up
for i in $(seq 1 "$ranks"); do
    ip netns add "prony$i" || left_out "the kernel has no network namespaces"
    ip link add "prony-v$i" type veth peer name eth0 netns "prony$i" || left_out "the kernel has no veth"
    ip link set "prony-v$i" master $bridge up
    ip netns exec "prony$i" ip addr add "10.213.0.$i/24" dev eth0
    ip netns exec "prony$i" ip link set eth0 up
    ip netns exec "prony$i" ip link set lo up
    ip netns exec "prony$i" tc qdisc add dev eth0 root netem rate $rate delay $delay 2>/dev/null || {
        [ -n "${PRONY_RATE_ONLY-}" ] || left_out "the kernel has no netem (sch_netem); PRONY_RATE_ONLY=1 limits the rate alone"
        ip netns exec "prony$i" tc qdisc add dev eth0 root tbf rate $rate burst 128kb latency 50ms
    }
done

# The launcher's daemon of host 10.213.0.N starts in the namespace pronyN, by this agent in place of ssh.
cat >"$folder/agent" <<'AGENT'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "prony${host##*.}" sh -c "$*"
AGENT
chmod +x "$folder/agent"
hosts=$(seq -s , -f "10.213.0.%g" 1 "$ranks")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export MPIR_CVAR_NOLOCAL=1 # MPICH: no shared memory between the ranks
set -- "$prony_mpi" bench "$model" --shard "$ranks" -x 1 "$@"
case $mpirun in
*openmpi*)
    "$mpirun" --mca plm_rsh_agent "$folder/agent" --mca btl tcp,self --mca btl_tcp_if_include 10.213.0.0/24 \
        --mca oob_tcp_if_include 10.213.0.0/24 --mca orte_keep_fqdn_hostnames 1 --bind-to none --host "$hosts" -n "$ranks" "$@"
    ;;
*) "$mpirun" -launcher ssh -launcher-exec "$folder/agent" -hosts "$hosts" -iface $bridge -n "$ranks" "$@" ;;
esac
