"""A network of known delay and rate between network namespaces of one machine: tc netem on veth pairs, or delay_line where the
kernel has no netem. Each namespace stands for a host node1, node2 ... with its own host name, and mpirun starts processes there."""
import os
import shutil
import subprocess

ADDRESS = "10.201.%d.%d"


class NoNetwork(Exception):
    """This machine cannot have such a network; the text says why."""


def command(*words, fails=False):
    ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if ran.returncode != 0 and not fails:
        raise NoNetwork("%s: %s" % (" ".join(words), ran.stdout.decode(errors="replace").strip()))
    return ran.returncode == 0


class Network:
    """delay_us: one way; mbit: of each host's link. `kind` says what delays: netem or delay_line."""

    def __init__(self, folder, delay_line, hosts=4, delay_us=200, mbit=1000):
        self.folder, self.hosts, self.delay_us, self.mbit = folder, hosts, delay_us, mbit
        self.prefix = "p%x" % (os.getpid() % 0x100000)
        self.subnet = os.getpid() % 250
        self.line, self.kind = None, None
        if os.geteuid() != 0:
            raise NoNetwork("network namespaces need root")
        for program in ("ip", "tc", "unshare"):
            if not shutil.which(program):
                raise NoNetwork("%s is not installed (Debian: iproute2, util-linux)" % program)
        try:
            self.make(delay_line)
        except BaseException:
            self.close()
            raise

    def name(self, host):
        return "%sn%d" % (self.prefix, host)

    def address(self, host):
        return ADDRESS % (self.subnet, host + 1)

    def make(self, delay_line):
        for host in range(self.hosts):
            command("ip", "netns", "add", self.name(host))
        if self.has_netem():
            self.kind = "netem"
            self.make_bridge()
        else:
            self.kind = "delay_line"
            self.start_line(delay_line)
        for host in range(self.hosts):
            space, device = self.name(host), "%s%d" % (self.prefix, host)
            command("ip", "-n", space, "link", "set", device, "mtu", "9000", "up")
            command("ip", "-n", space, "addr", "add", self.address(host) + "/24", "dev", device)
            command("ip", "-n", space, "link", "set", "lo", "up")
            if self.kind == "netem":
                command("ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", device, "root", "netem", "delay",
                        "%dus" % self.delay_us, "rate", "%dmbit" % self.mbit, "limit", "10000")
        self.agent = os.path.join(self.folder, "agent.sh")
        with open(self.agent, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\n# HOST COMMAND...: what mpirun calls in place of ssh\nhost=${1##*.}; shift\n'
                       'exec ip netns exec %sn$((host - 1)) unshare --uts sh -c "hostname node$host; $*"\n' % self.prefix)
        os.chmod(self.agent, 0o755)

    def has_netem(self):
        tc = ("ip", "netns", "exec", self.name(0), "tc", "qdisc")
        return command(*tc, "add", "dev", "lo", "root", "netem", "delay", "1us", fails=True) and command(*tc, "del", "dev", "lo", "root")

    def make_bridge(self):
        bridge = self.prefix + "br"
        command("ip", "link", "add", bridge, "type", "bridge")
        command("ip", "link", "set", bridge, "mtu", "9000", "up")
        for host in range(self.hosts):
            outer = "%so%d" % (self.prefix, host)
            command("ip", "link", "add", outer, "type", "veth", "peer", "name", "%s%d" % (self.prefix, host), "netns", self.name(host))
            command("ip", "link", "set", outer, "mtu", "9000", "master", bridge, "up")

    def start_line(self, delay_line):
        if not os.path.exists("/dev/net/tun"):
            raise NoNetwork("this kernel has neither tc netem nor tap devices")
        self.line = subprocess.Popen([delay_line, self.prefix, str(self.hosts), str(self.delay_us), str(self.mbit)],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.line.stdout.readline() != b"ready\n":
            raise NoNetwork("delay_line does not start")
        for host in range(self.hosts):
            command("ip", "link", "set", "%s%d" % (self.prefix, host), "netns", self.name(host))

    def mpirun(self, program, ranks):
        """The words that start `ranks` processes, one a host (Open MPI)."""
        subnet = ADDRESS % (self.subnet, 0) + "/24"
        return ["ip", "netns", "exec", self.name(0), "unshare", "--uts", "sh", "-c", 'hostname node1; exec "$@"', "sh", program,
                "--mca", "plm_rsh_agent", self.agent, "--mca", "oob_tcp_if_include", subnet, "--mca", "btl", "tcp,self",
                "--mca", "btl_tcp_if_include", subnet, "-H", ",".join(self.address(h) for h in range(self.hosts)),
                "--map-by", "ppr:1:node", "--bind-to", "none", "-n", str(ranks)]

    def close(self):
        if self.line:
            self.line.stdin.close()
            self.line.stdout.close()
            self.line.wait()
        if self.kind == "netem":
            command("ip", "link", "del", self.prefix + "br", fails=True)
        for host in range(self.hosts):
            command("ip", "netns", "del", self.name(host), fails=True)
