#!/bin/bash
# A private Slurm on this machine, in a temporary folder: slurm.sh PRONY_MPI SOURCE_DIR
#
# Starts munged, slurmctld and a slurmd for each of two node names, submits the script of docs/guides/cluster.md with sbatch, and holds the
# file that it leaves against the schema. A second job is ended by scancel, and a third goes on with its file. Needs root, Debian's
# slurm-wlm and munge, and PRONY_MPI built with Open MPI. Exit status 77: this machine cannot run it.
set -euo pipefail
prony_mpi=$(realpath "$1")
source_dir=$(realpath "$2")

leave_out() {
    echo "slurm.sh: $*: left out"
    exit 77
}
for program in munged slurmctld slurmd sbatch srun; do
    command -v "$program" >/dev/null || leave_out "$program is not installed (Debian: slurm-wlm munge)"
done
[ "$(id -u)" -eq 0 ] || leave_out "slurmd needs root"

work=$(mktemp -d /tmp/prony-slurm.XXXXXX)
pids=()
end() {
    local status=$?
    [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    if [ "$status" -ne 0 ] && [ "$status" -ne 77 ]; then tail -n 20 "$work"/*.log "$work"/job*.out 2>/dev/null || true; fi
    rm -rf "$work"
}
trap end EXIT
chmod 755 "$work"

# ---- daemons ----

host=$(uname -n)
port=$((20000 + $$ % 10000))
mkdir -m 700 "$work/munge" "$work/state" "$work/spool-n1" "$work/spool-n2" "$work/tmp-n1" "$work/tmp-n2"
head -c 1024 /dev/urandom >"$work/munge/key"
chmod 400 "$work/munge/key"
export MUNGE_SOCKET=$work/munge.socket
munged --force --foreground --socket="$MUNGE_SOCKET" --key-file="$work/munge/key" --pid-file="$work/munge/pid" \
    --log-file="$work/munge.log" --seed-file="$work/munge/seed" >"$work/munged.log" 2>&1 &
pids+=($!)

cpus=$(nproc)
cat >"$work/slurm.conf" <<CONF
ClusterName=prony
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$MUNGE_SOCKET
CredType=cred/munge
StateSaveLocation=$work/state
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmdSpoolDir=$work/spool-%n
TmpFS=$work/tmp-%n
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=pmix
KillWait=5
ReturnToService=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=$cpus State=UNKNOWN
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=$cpus State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf
slurmctld -D -f "$SLURM_CONF" >"$work/slurmctld.out.log" 2>&1 &
pids+=($!)
for node in n1 n2; do
    slurmd -D -f "$SLURM_CONF" -N "$node" >"$work/slurmd-$node.out.log" 2>&1 &
    pids+=($!)
done
for ((i = 0; i < 100; i++)); do
    [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && break
    sleep 0.3
done
[ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] || { echo "slurm.sh: the nodes did not come up: $(sinfo 2>&1)" >&2; exit 1; }

# ---- jobs ----

# The script of the guide, for two nodes and a small model.
script() { # ARGUMENTS
    awk '/#!\/bin\/bash/ { on = 1 } on && /^    / { print substr($0, 5) } on && /^$/ { exit }' "$source_dir/docs/guides/cluster.md" |
        sed "s/--nodes=8/--nodes=2/; s|prony-mpi scale .*|$prony_mpi scale $source_dir/models/digits.onnx $*|" >"$work/job.sh"
    grep -q '^srun --cpu-bind=none ' "$work/job.sh" || { echo "slurm.sh: docs/guides/cluster.md has no script" >&2; exit 1; }
}

check() { # FILE LEAST
    PYTHONPATH=$source_dir/tests/command python3 - "$source_dir" "$1" "$2" <<'PYTHON'
import json, sys
import command_case
command_case.SOURCE = sys.argv[1]
with open(sys.argv[2]) as file:
    study = json.load(file)
problems = list(command_case.Schema("study").problems(study))
assert not problems, problems
assert len(study["nodes"]) == 2, study["nodes"]
assert {b["node"] for b in study["blocks"]} == {0, 1}
assert len(study["blocks"]) >= int(sys.argv[3]), len(study["blocks"])
print("slurm.sh: %d blocks of 2 nodes" % len(study["blocks"]))
PYTHON
}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
script "-x 1-2 --processes 3 -r 20 -w 2 --json $work/study.json"
timeout 120 sbatch --wait -o "$work/job1.out" "$work/job.sh"
check "$work/study.json" 18

script "-x 1-2 --processes 200 -r 20 -w 2 --json $work/long.json"
job=$(sbatch --parsable -o "$work/job2.out" "$work/job.sh")
for ((i = 0; i < 300; i++)); do
    [ "$(grep -c '"samples_ns"' "$work/long.json" 2>/dev/null || true)" -ge 6 ] 2>/dev/null && break
    sleep 0.2
done
scancel "$job"
for ((i = 0; i < 100; i++)); do
    [ -z "$(squeue -h -j "$job" 2>/dev/null)" ] && break
    sleep 0.3
done
check "$work/long.json" 6
before=$(grep -c '"samples_ns"' "$work/long.json")

script "--json $work/long.json --resume --timeout 60"
sed -i 's/^#SBATCH --time=.*//; s/^srun /timeout -s TERM 8 srun /' "$work/job.sh"
timeout 120 sbatch --wait -o "$work/job3.out" "$work/job.sh" || true # the limit ends it
check "$work/long.json" $((before + 1))
echo "slurm.sh: passed"
