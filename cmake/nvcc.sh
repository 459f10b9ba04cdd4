# nvcc.sh LOG COMMAND...: runs nvcc. Its messages go to LOG: they are long, because ptxas describes
# every kernel.
log=$1
shift
"$@" 2>"$log" || {
    status=$?
    cat "$log" >&2
    exit $status
}
