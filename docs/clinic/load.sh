#!/bin/sh
# Asks the clinic for the same pages again and again, and writes how many were answered, for `report --requests`.
set -eu

usage() {
	cat <<'END'
Usage: load.sh [--port PORT] [--rounds COUNT] [FILE]

  --port PORT     Port of the clinic [default: 8090]
  --rounds COUNT  A round lasts a second: 200 lists of owners, 100 owners, 5 visits and 10 reports [default: 20]
  FILE            Where the counts go, behind those that it has already [default: counts.csv]

It asks with ab (Debian's package apache2-utils) if that is installed, else with curl.
END
}

fail() {
	echo "load.sh: $1" >&2
	exit 1
}

port=8090 rounds=20 file=''
while [ $# -gt 0 ]; do
	case $1 in
	--port | --rounds)
		[ $# -gt 1 ] || fail "$1 needs a number"
		case $2 in '' | *[!0-9]*) fail "$1 $2: not a number" ;; esac
		if [ "$1" = --port ]; then port=$2; else rounds=$2; fi
		shift
		;;
	--help | -h)
		usage
		exit
		;;
	-*)
		usage >&2
		exit 2
		;;
	*)
		[ -z "$file" ] || fail "$file and $1: one file only"
		file=$1
		;;
	esac
	shift
done
file=${file:-counts.csv}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
clinic=http://127.0.0.1:$port

printf 'pet=1&date=05%%2F03%%2F2026&reason=check' >"$work/form"
form=application/x-www-form-urlencoded

# Asks $1 times for page $2, by GET or by POST. Stops unless each is answered.
ask() {
	count=$1 address=$clinic/$2 method=$3
	if command -v ab >/dev/null; then
		set -- -q -k -l -n "$count"
		[ "$method" = GET ] || set -- "$@" -p "$work/form" -T "$form"
		said=$(ab "$@" "$address") || fail "$address: the clinic does not answer: is it open?"
		answered=$(echo "$said" | awk '
			/^Complete requests:/ { answered += $3 }
			/^(Failed requests|Non-2xx responses):/ { answered -= $3 }
			END { print answered + 0 }')
	else
		set -- --silent --output /dev/null --write-out '%{http_code}\n'
		[ "$method" = GET ] || set -- "$@" --data-binary "@$work/form"
		# curl repeats what has such a range, and sends nothing of what is behind #.
		answered=$(curl "$@" "$address#[1-$count]" | grep -c '^200$') ||
			fail "$address: the clinic does not answer: is it open?"
	fi
	[ "$answered" -eq "$count" ] || fail "$address: only $answered of $count requests were answered"
}

now_ms() {
	date +%s%3N
}

stamp() {
	date -u +%Y-%m-%dT%H:%M:%SZ
}

# Whole windows of a second lie before and after all requests, so that none with a request is left out.
begin=$(stamp)
sleep 1
first=$(now_ms)
round=0
while [ "$round" -lt "$rounds" ]; do
	ask 200 'owners?name=a' GET
	ask 100 'owner?id=7' GET
	ask 5 visits POST
	ask 10 report GET
	round=$((round + 1))
	left=$((first + 1000 * round - $(now_ms)))
	[ "$left" -le 0 ] || sleep "$((left / 1000)).$(printf %03d $((left % 1000)))"
done
took=$(($(now_ms) - first))
sleep 1
end=$(stamp)

[ -s "$file" ] || echo route,count,handler,begin,end >"$file"
cat >>"$file" <<END
/owners,$((200 * rounds)),OwnersServlet.doGet,$begin,$end
/owner,$((100 * rounds)),OwnerServlet.doGet,$begin,$end
/visits,$((5 * rounds)),VisitServlet.doPost,$begin,$end
/report,$((10 * rounds)),ReportServlet.doGet,$begin,$end
END
echo "$((315 * rounds)) requests were answered in $((took / 1000)) s; counts are in $file"
