#!/bin/sh
# Sluice from a shell script, with curl and nothing else.
#
#   uploads.sh add FILE [DESTINATION]   uploads a file and waits for its end; status 0 when it is completed
#   uploads.sh failed                   the uploads that failed, one a line: id, path
#   uploads.sh retry                    begins all of them again
#   uploads.sh pause [SECONDS]          holds everything, for two hours
#   uploads.sh resume
#
# SLUICE_SOCKET: where the daemon listens, /run/sluice/control.sock if it is not set. Or, over TCP, SLUICE_URL
# (https://nas.local:8484) and SLUICE_TOKEN_FILE with the token in it.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# In a file and not among the arguments, which everybody on the machine can read.
umask 077
if [ -n "${SLUICE_URL:-}" ]; then
    printf 'header = "Authorization: Bearer %s"\n' "$(cat "$SLUICE_TOKEN_FILE")" > "$work/curl"
else
    printf 'unix-socket = "%s"\n' "${SLUICE_SOCKET:-/run/sluice/control.sock}" > "$work/curl"
fi
base="${SLUICE_URL:-http://sluice}/v1"

# Prints the answer. One that says no goes to standard error, and ends the script.
ask() { # METHOD PATH [BODY]
    status=$(curl -sS --config "$work/curl" -X "$1" ${3:+--data-binary "$3"} -o "$work/answer" -w '%{http_code}' "$base/$2")
    case $status in
    2*) cat "$work/answer" ;;
    *) cat "$work/answer" >&2; exit 1 ;;
    esac
}

# The first value of this name in JSON, a plain word or a number. Names within an object are sorted.
field() { grep -o "\"$1\":\"\{0,1\}[^\",}]*" | head -n 1 | sed 's/[^:]*:"\{0,1\}//'; }

# Each upload of a list in a line of its own.
lines() { sed 's/{"attempt":/\n&/g' | grep '^{"attempt":' || true; }

# Waits for the end of an upload: reads the stream, and asks again behind the last event when it breaks off.
follow() { # ID SINCE
    since=$2
    mkfifo "$work/events"
    while :; do
        curl -sSN --config "$work/curl" "$base/events?id=$1&types=completed,failed,cancelled&since=$since" \
            > "$work/events" 2> /dev/null &
        reader=$!
        end=
        while read -r name value; do
            case "$name $value" in
            "id: "*) since=$value ;;
            "event: reset") end=lost ;;
            "event: "*) end=$value ;;
            # The blank line behind an event.
            " ") [ -z "$end" ] || break ;;
            esac
        done < "$work/events"
        kill "$reader" 2> /dev/null || true
        case $end in
        '') sleep 1 ;;
        lost)
            end=$(ask GET "uploads/$1" | field state)
            break
            ;;
        *) break ;;
        esac
    done
    rm "$work/events"
    printf '%s %s\n' "$1" "$end"
    [ "$end" = completed ]
}

case ${1:-} in
add)
    file=$(realpath "$2")
    # A name may hold any byte, and so it is given in hexadecimal.
    path=$(printf %s "$file" | od -An -v -tx1 | tr -d ' \n')
    to=${3:+\"$3\"}
    # Before the upload is there: nothing can happen between these two that is not told afterwards.
    status=$(ask GET status)
    added=$(ask POST uploads "{\"path\":\"$path\",\"to\":[$to],\"context\":{},\"again\":false}")
    id=$(printf %s "$added" | field id)
    printf '%s added\n' "$id"
    follow "$id" "$(printf %s "$status" | field seq)"
    ;;
failed)
    list=$(ask GET 'uploads?list=failed&limit=1000')
    printf '%s\n' "$list" | lines | sed 's/.*"id":"\([0-9A-Z]\{26\}\)".*"path":"\(\([^"\\]\|\\.\)*\)".*/\1 \2/'
    ;;
retry)
    retried=$(ask POST retry '{"ids":[],"all":true}')
    printf '%s retried\n' "$(printf %s "$retried" | field count)"
    ;;
pause) ask POST pause "{\"ids\":[],\"all\":true,\"duration\":${2:-7200}}" > /dev/null ;;
resume) ask POST resume '{"ids":[],"all":true}' > /dev/null ;;
*) sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//; p}' "$0" >&2; exit 64 ;;
esac
