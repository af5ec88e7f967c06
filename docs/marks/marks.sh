#!/bin/bash
# Marks the phases of a script for joular-bpf run. Without it, marks cost nothing.
mark() { echo "$*" >"${JOULAR_MARKS_PIPE:-/dev/null}"; }

mark begin load
sum=0
for ((i = 1; i < 200000; i++)); do ((sum += i)); done
mark end load
mark event loaded "sum=$sum"
