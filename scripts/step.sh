# Read by scripts that take long.
# step NAME TEXT COMMAND…: runs it, and says every 5 seconds that it goes on and what it wrote last; where it fails, the end of what it
# wrote.
step() {
    name=$1 text=$2 log=$(mktemp) begin=$(date +%s)
    shift 2
    echo "$name: $text"
    "$@" >"$log" 2>&1 &
    job=$! ticks=0
    while kill -0 $job 2>/dev/null; do
        sleep 0.2
        ticks=$((ticks + 1))
        [ $((ticks % 25)) != 0 ] || echo "$name: $(($(date +%s) - begin)) s: $(tail -n 1 "$log" | cut -c 1-100)"
    done
    status=0
    wait $job || status=$?
    [ $status = 0 ] || tail -n 20 "$log" >&2
    rm -f "$log"
    return $status
}
