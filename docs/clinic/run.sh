#!/bin/sh
# Compiles the clinic and opens it in Tomcat, for this machine only, until Ctrl-C or the end of its time.
set -eu

usage() {
	cat <<'END'
Usage: run.sh [--mended] [--port PORT] [--seconds TIME]

  --mended        With Visit.java of mended/ in place of that of src/
  --port PORT     Port on 127.0.0.1 [default: 8090]
  --seconds TIME  Close it after this time [default: 1800]

It needs a JDK of version 17 or later (JAVA_HOME, or javac in PATH), and Tomcat 10 (CATALINA_HOME, or
/usr/share/tomcat10, where Debian's package tomcat10-common has it).
END
}

fail() {
	echo "run.sh: $1" >&2
	exit 1
}

mended='' port=8090 seconds=1800
while [ $# -gt 0 ]; do
	case $1 in
	--mended) mended=yes ;;
	--port | --seconds)
		[ $# -gt 1 ] || fail "$1 needs a number"
		case $2 in '' | *[!0-9]*) fail "$1 $2: not a number" ;; esac
		if [ "$1" = --port ]; then port=$2; else seconds=$2; fi
		shift
		;;
	--help | -h)
		usage
		exit
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
	shift
done

here=$(cd "$(dirname "$0")" && pwd)
tomcat=${CATALINA_HOME:-/usr/share/tomcat10}
bin=${JAVA_HOME:+$JAVA_HOME/bin/}
[ -e "$tomcat/lib/servlet-api.jar" ] || fail "no Tomcat 10 in $tomcat: install tomcat10-common, or set CATALINA_HOME"
command -v "${bin}javac" >/dev/null || fail "no ${bin}javac: install a JDK, or set JAVA_HOME"

base=$(mktemp -d)
server=''
# Waits until Tomcat has ended: its files are in use until then.
close() {
	trap '' INT TERM
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || true
		wait "$server" || true
	fi
	rm -rf "$base"
}
trap close EXIT
trap 'exit 0' INT TERM

app=$base/webapps/ROOT/WEB-INF
mkdir -p "$base/conf" "$base/logs" "$base/temp" "$app/classes"
cp "$here/web/server.xml" "$base/conf/"
cp "$here/web/web.xml" "$app/"
cp -r "$here/src" "$base/src"
[ -z "$mended" ] || cp -r "$here/mended/." "$base/src/"
"${bin}javac" --release 17 -cp "$tomcat/lib/servlet-api.jar" -d "$app/classes" "$base"/src/clinic/*.java

# `timeout` ends it even if this script is killed. The shell between notes the id of the process that becomes the JVM.
# shellcheck disable=SC2016
timeout "$seconds" sh -c 'echo $$ >"$1"; shift; exec "$@"' sh "$base/pid" \
	"${bin}java" -Xmx256m "-Dclinic.port=$port" "-Dcatalina.home=$tomcat" "-Dcatalina.base=$base" \
	"-Djava.io.tmpdir=$base/temp" -Duser.language=en -Dorg.apache.catalina.startup.EXIT_ON_INIT_FAILURE=true \
	-cp "$tomcat/bin/bootstrap.jar:$tomcat/bin/tomcat-juli.jar" \
	org.apache.catalina.startup.Bootstrap start >"$base/log" 2>&1 &
server=$!

# Its log is asked, because whoever else has the port would answer, too.
tries=0
until grep -q 'Server startup in' "$base/log" 2>/dev/null; do
	if [ "$tries" -ge 600 ] || ! kill -0 "$server" 2>/dev/null; then
		cat "$base/log" >&2
		fail "Tomcat did not start: the lines above say why. If port $port is in use, choose another one with --port"
	fi
	tries=$((tries + 1))
	sleep 0.1
done
if grep -q '^SEVERE' "$base/log"; then
	cat "$base/log" >&2
	fail "Tomcat started without the clinic: the lines above say why"
fi
echo "The clinic${mended:+, mended,} is open at http://127.0.0.1:$port/ (process $(cat "$base/pid")). Ctrl-C closes it."
wait "$server" || true
server=''
