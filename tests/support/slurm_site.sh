#!/bin/sh
# A Slurm cluster of two hosts on this machine, in namespaces of its own: unshare --mount --net --uts --pid --fork
# --mount-proc sh slurm_site.sh FOLDER. Hosts are network namespaces on a bridge. It says "ready" and ends, and with it
# everything in it, when its standard input does.
set -eu
cd "$1"
export SLURM_CONF="$PWD/slurm.conf" PATH="$PATH:/usr/sbin:/sbin"
mount -t tmpfs tmpfs /run
mkdir -p /run/netns ctl n1 n2
hostname ctl
printf '127.0.0.1 localhost\n10.77.0.1 ctl\n10.77.0.2 n1\n10.77.0.3 n2\n' > hosts
mount --bind hosts /etc/hosts
ip link set lo up
ip link add br0 type bridge
ip addr add 10.77.0.1/24 dev br0
ip link set br0 up
for i in 1 2; do
  ip netns add n$i
  ip link add v$i type veth peer name eth0 netns n$i
  ip link set v$i master br0 up
  ip -n n$i addr add 10.77.0.$((i + 1))/24 dev eth0
  ip -n n$i link set eth0 up
  ip -n n$i link set lo up
done
cat > slurm.conf <<C
ClusterName=lab
SlurmctldHost=ctl(10.77.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$PWD/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=20
KillWait=5
StateSaveLocation=$PWD/ctl
SlurmdSpoolDir=$PWD/%n
SlurmdPidFile=$PWD/slurmd-%n.pid
SlurmctldPidFile=$PWD/slurmctld.pid
SlurmctldLogFile=$PWD/slurmctld.log
SlurmdLogFile=$PWD/slurmd-%n.log
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=n1 NodeAddr=10.77.0.2 CPUs=2 Boards=1 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=2000
NodeName=n2 NodeAddr=10.77.0.3 CPUs=2 Boards=1 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=2000
PartitionName=lab Nodes=n1,n2 Default=YES MaxTime=00:10:00 State=UP
SlurmdParameters=config_overrides
C
printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n' > cgroup.conf
head -c 1024 /dev/urandom > munge.key
chmod 400 munge.key
munged --force --key-file="$PWD/munge.key" --socket="$PWD/munge.socket" --pid-file="$PWD/munged.pid" \
  --log-file="$PWD/munged.log" --seed-file="$PWD/munged.seed"
slurmctld
mkdir -p hidden
cat > start_host.sh <<H
# slurmd of host \$1. By nsenter, for \`ip netns exec\` hides the cgroups from it; n2 has a folder of its own at hidden.
export SLURM_CONF=$PWD/slurm.conf
exec nsenter --net=/run/netns/\$1 unshare --uts --mount sh -c '
  [ "\$1" = n1 ] || mount -t tmpfs tmpfs $PWD/hidden
  hostname \$1 && exec slurmd -N \$1' start \$1
H
for host in n1 n2; do sh start_host.sh $host; done
until [ "$(sinfo -h -t idle -o %D)" = 2 ]; do sleep 0.1; done
echo ready
read -r _ || true
