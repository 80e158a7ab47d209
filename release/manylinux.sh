#!/bin/sh
# Gives wheels of te-select-runtime the manylinux tag that auditwheel finds, or says why not:
#   release/manylinux.sh PYTHON DIST
# auditwheel is shown a copy in which the kernels that the wheel brings are unpacked.
set -eu
python=$1 dist=$2
for wheel in "$dist"/te_select_runtime-*-linux_*.whl; do
	test -e "$wheel" || continue
	folder=$(mktemp -d)
	"$python" -m wheel unpack --dest "$folder" "$wheel" > /dev/null
	gunzip "$folder"/*/te_select/prebuilt/*.gz
	"$python" -m wheel pack --dest-dir "$folder" "$folder"/te_select_runtime-* > /dev/null
	shown=$("$python" -m auditwheel show "$folder"/*.whl 2>&1 | tr '\n' ' ')
	rm -r "$folder"
	tag=$(echo "$shown" | sed -n 's/.*platform tag: *"\(manylinux_[^"]*\)".*/\1/p')
	if [ "$tag" ]; then
		"$python" -m wheel tags --remove --platform-tag "$tag" "$wheel"
	else
		echo "$wheel gets no manylinux tag: $shown"
	fi
done
