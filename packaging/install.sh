#!/bin/sh
# Installs joular-bpf from the archive for any Linux. It installs nothing whose checksum or signature is wrong.
set -eu

usage() {
	cat <<'END'
Usage: install.sh [--prefix DIR] [--key FILE] FROM
       install.sh [--prefix DIR] --uninstall

FROM is a directory, or the address of one, with the archive and SHA256SUMS.

  --prefix DIR  Where to install [default: /usr/local]
  --key FILE    Public key of minisign, which must have signed SHA256SUMS
  --uninstall   Remove what this script installed
END
}

fail() {
	echo "install.sh: $1" >&2
	exit 1
}

# Copies file $1 of FROM to $2.
get() {
	case $from in
	https://* | http://*)
		if command -v curl >/dev/null; then
			curl --fail --silent --show-error --location --output "$2" "$from/$1"
		elif command -v wget >/dev/null; then
			wget --quiet --output-document="$2" "$from/$1"
		else
			fail "downloading $from/$1: neither curl nor wget is installed: install one of them"
		fi
		;;
	*) cp "${from#file://}/$1" "$2" ;;
	esac || fail "getting $1 from $from failed: nothing was installed"
}

# Leaves the archive in $work, once its checksum is known to be right.
get_archive() {
	get SHA256SUMS "$work/SHA256SUMS"
	if [ -n "$key" ]; then
		command -v minisign >/dev/null || fail "--key needs minisign to verify SHA256SUMS: install minisign"
		get SHA256SUMS.minisig "$work/SHA256SUMS.minisig"
		minisign -Vq -p "$key" -m "$work/SHA256SUMS" -x "$work/SHA256SUMS.minisig" ||
			fail "the signature of SHA256SUMS is not that of $key: nothing was installed"
		echo "SHA256SUMS is signed by $key"
	else
		echo "SHA256SUMS has no verified signature: only --key shows who made it"
	fi
	machine=$(uname -m)
	line=$(grep "^SHA256 (joular-bpf-[0-9.]*-$machine-linux\.tar\.gz) = [0-9a-f]*\$" "$work/SHA256SUMS") ||
		fail "SHA256SUMS names no archive for $machine: use a package, or build from source"
	archive=$(echo "$line" | sed 's/^SHA256 (\(.*\)) = .*/\1/')
	get "$archive" "$work/$archive"
	sum=$(sha256sum "$work/$archive" | cut -d ' ' -f 1)
	[ "$sum" = "${line##* }" ] || fail "$archive has SHA-256 $sum, but SHA256SUMS says ${line##* }: nothing was installed"
	echo "$archive has the SHA-256 of SHA256SUMS"
}

# Installs file $1 as $2 below the prefix, with mode $3, and notes it.
put() {
	mkdir -p "$(dirname "$prefix/$2")"
	cp "$1" "$prefix/$2.new"
	chmod "$3" "$prefix/$2.new"
	# A program that runs now is replaced, not changed.
	mv "$prefix/$2.new" "$prefix/$2"
	echo "$2" >>"$work/list"
	echo "installed $prefix/$2"
}

install_all() {
	if ! mkdir -p "$prefix/$documents" || ! [ -w "$prefix/$documents" ]; then
		fail "writing to $prefix is not allowed: run this as root, or choose another --prefix"
	fi
	tar -xzf "$work/$archive" -C "$work"
	unpacked=$work/${archive%.tar.gz}
	put "$unpacked/joular-bpf" bin/joular-bpf 755
	for paper in LICENSE-MIT LICENSE-APACHE LICENSES-OF-LIBRARIES.txt; do
		put "$unpacked/$paper" "$documents/$paper" 644
	done
	(cd "$unpacked/usr" && find share -type f) | sort >"$work/share"
	while read -r file; do
		put "$unpacked/usr/$file" "$file" 644
	done <"$work/share"
	[ ! -f "$prefix/$list" ] || remove_except "$work/list"
	cp "$work/list" "$prefix/$list"
}

# Removes what an earlier installation has, except the files that $1 lists.
remove_except() {
	while read -r file; do
		if ! grep -qxF "$file" "$1"; then
			rm -f "$prefix/$file"
			echo "removed $prefix/$file"
		fi
	done <"$prefix/$list"
	rm -f "$prefix/$list"
}

documents=share/doc/joular-bpf
# What was installed, for --uninstall.
list=$documents/installed.txt
prefix=/usr/local
key=
from=
uninstall=
while [ $# -gt 0 ]; do
	case $1 in
	--prefix | --key)
		[ $# -gt 1 ] || fail "$1 needs a value"
		if [ "$1" = --key ]; then key=$2; else prefix=$2; fi
		shift
		;;
	--uninstall) uninstall=yes ;;
	--help) usage && exit ;;
	-*) fail "there is no option $1: see --help" ;;
	*) from=${1%/} ;;
	esac
	shift
done

if [ -n "$uninstall" ]; then
	[ -f "$prefix/$list" ] || fail "removing joular-bpf from $prefix: there is no $prefix/$list, so it was not installed there"
	remove_except /dev/null
	rmdir "$prefix/$documents" 2>/dev/null || true
	exit
fi
[ -n "$from" ] || { usage >&2 && exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
get_archive
install_all
