# bash completion for sluice, made by `sluice completions bash` from the program's own tables.

# Adds the words that begin with the typed text.
_sluice_words() {
    local word
    for word; do
        if [[ $word == "$cur"* ]]; then COMPREPLY+=("$word"); fi
    done
}

# Names from the daemon or the configuration; no names if neither answers at once.
_sluice_ask() {
    local line
    while IFS= read -r line; do
        _sluice_words "${line%%$'\t'*}"
    done < <("${COMP_WORDS[0]}" completions "$@" "${asking[@]}" 2>/dev/null </dev/null)
}

# True if the option takes a value.
_sluice_takes() {
    case "$1 $2" in
        " --config" | " --socket") return 0 ;;
        "run --config" | "run --log-level" | "run --log-format" | "run --wait") return 0 ;;
        "init --folder" | "init --to" | "init --token-file" | "init --after" | "init --metered" | "init --hours" | "init --test-file" | "init --from" | "init --config") return 0 ;;
        "demo --config") return 0 ;;
        "check --folder" | "check --destination" | "check --test-file" | "check --test-size" | "check --config" | "check --socket") return 0 ;;
        "config --config") return 0 ;;
        "report --output" | "report --format" | "report --config" | "report --socket") return 0 ;;
        "edit --config" | "edit --socket") return 0 ;;
        "doctor --config") return 0 ;;
        "hook --config" | "hook --socket") return 0 ;;
        "rebuild --unknown" | "rebuild --config") return 0 ;;
        "receive --into" | "receive --listen" | "receive --token-file" | "receive --trusted-proxy" | "receive --max-size" | "receive --config" | "receive --log-level" | "receive --log-format") return 0 ;;
        "status --config" | "status --socket") return 0 ;;
        "top --config" | "top --socket") return 0 ;;
        "web --config" | "web --socket") return 0 ;;
        "list --list" | "list --state" | "list --destination" | "list --folder" | "list --text" | "list --context" | "list --since" | "list --until" | "list --limit" | "list --config" | "list --socket") return 0 ;;
        "show --config" | "show --socket") return 0 ;;
        "why --config" | "why --socket") return 0 ;;
        "plan --until" | "plan --rate" | "plan --from" | "plan --on" | "plan --interface" | "plan --ssid" | "plan --gateway" | "plan --metered" | "plan --roaming" | "plan --lan" | "plan --config" | "plan --socket") return 0 ;;
        "policy --folder" | "policy --to" | "policy --at" | "policy --on" | "policy --interface" | "policy --ssid" | "policy --gateway" | "policy --metered" | "policy --roaming" | "policy --lan" | "policy --battery" | "policy --temperature" | "policy --size" | "policy --kind" | "policy --duration" | "policy --config") return 0 ;;
        "usage --days" | "usage --months" | "usage --by" | "usage --destination" | "usage --folder" | "usage --config" | "usage --socket") return 0 ;;
        "quota --config" | "quota --socket") return 0 ;;
        "remote --limit" | "remote --config" | "remote --socket") return 0 ;;
        "orphans --config" | "orphans --socket") return 0 ;;
        "trace --for" | "trace --max" | "trace --output" | "trace --config" | "trace --socket") return 0 ;;
        "metrics --config" | "metrics --socket") return 0 ;;
        "events --since" | "events --config" | "events --socket") return 0 ;;
        "add --to" | "add --name" | "add --key" | "add --context" | "add --header" | "add --url" | "add --upload-url" | "add --config" | "add --socket") return 0 ;;
        "pause --folder" | "pause --destination" | "pause --for" | "pause --config" | "pause --socket") return 0 ;;
        "resume --folder" | "resume --destination" | "resume --config" | "resume --socket") return 0 ;;
        "cancel --folder" | "cancel --destination" | "cancel --config" | "cancel --socket") return 0 ;;
        "retry --folder" | "retry --destination" | "retry --config" | "retry --socket") return 0 ;;
        "priority --set" | "priority --folder" | "priority --destination" | "priority --config" | "priority --socket") return 0 ;;
        "remove --config" | "remove --socket") return 0 ;;
        "flush --list" | "flush --folder" | "flush --destination" | "flush --config" | "flush --socket") return 0 ;;
        "allow --folder" | "allow --rule" | "allow --for" | "allow --config" | "allow --socket") return 0 ;;
        "limit --for" | "limit --config" | "limit --socket") return 0 ;;
        "reload --config" | "reload --socket") return 0 ;;
        "rescan --folder" | "rescan --config" | "rescan --socket") return 0 ;;
        "folder --config" | "folder --socket") return 0 ;;
        "systemd-paths --config") return 0 ;;
        "completions --config" | "completions --socket") return 0 ;;
        "version --config") return 0 ;;
    esac
    return 1
}

_sluice_value() {
    case "$verb $option" in
        *" --config" | *" --socket" | "init --folder" | *" --token-file" | "init --from" | *" --output")
            compopt -o default ;;
        *" --log-level")
            _sluice_words error warning notice info debug ;;
        *" --log-format")
            _sluice_words text json ;;
        "init --metered")
            _sluice_words pause allow ;;
        *" --test-file")
            _sluice_words removable any none ;;
        "check --folder" | "list --folder" | "policy --folder" | "usage --folder" | "pause --folder" | "resume --folder" | "cancel --folder" | "retry --folder" | "priority --folder" | "flush --folder" | "allow --folder" | "rescan --folder")
            _sluice_ask folders ;;
        *" --destination" | "policy --to" | "add --to")
            _sluice_ask destinations ;;
        *" --format")
            _sluice_words html markdown ;;
        *" --unknown")
            _sluice_words fail send assume-sent ;;
        *" --into")
            compopt -o dirnames ;;
        "list --list")
            _sluice_words ongoing completed failed cancelled history ;;
        *" --state")
            _sluice_words cancelled completed expired failed finishing opening paused queued settling staging superseded uploading waiting ;;
        "plan --metered" | *" --roaming" | *" --lan" | "policy --metered")
            _sluice_words yes no ;;
        *" --by")
            _sluice_words destination folder network ;;
        "flush --list")
            _sluice_words completed failed cancelled ;;
    esac
}

_sluice_options() {
    case $verb in
        '') _sluice_words --config --socket --help --version ;;
        run) _sluice_words --config --log-level --log-format --once --wait --json --help ;;
        init) _sluice_words --folder --to --token-file --after --metered --hours --start --test-file --offline --from --config --help ;;
        demo) _sluice_words --keep --config --help ;;
        check) _sluice_words --running --folder --destination --test-file --test-size --json --config --socket --help ;;
        destinations) _sluice_words --json --help ;;
        config) _sluice_words --json --config --help ;;
        report) _sluice_words --output --format --hide-names --offline --config --socket --help ;;
        edit) _sluice_words --config --socket --help ;;
        doctor) _sluice_words --json --config --help ;;
        hook) _sluice_words --json --config --socket --help ;;
        rebuild) _sluice_words --dry-run --yes --unknown --offline --force --json --config --help ;;
        receive) _sluice_words --into --listen --token-file --trusted-proxy --max-size --config --log-level --log-format --help ;;
        status) _sluice_words --follow --json --config --socket --help ;;
        top) _sluice_words --config --socket --help ;;
        web) _sluice_words --view --json --config --socket --help ;;
        list) _sluice_words --list --state --destination --folder --text --context --since --until --limit --json --config --socket --help ;;
        show) _sluice_words --json --config --socket --help ;;
        why) _sluice_words --json --config --socket --help ;;
        plan) _sluice_words --until --rate --from --on --interface --ssid --gateway --metered --roaming --lan --json --config --socket --help ;;
        policy) _sluice_words --folder --to --at --on --interface --ssid --gateway --metered --roaming --lan --battery --temperature --size --kind --duration --json --config --help ;;
        usage) _sluice_words --days --months --by --destination --folder --json --config --socket --help ;;
        quota) _sluice_words --json --config --socket --help ;;
        remote) _sluice_words --limit --foreign --json --config --socket --help ;;
        orphans) _sluice_words --abort --json --config --socket --help ;;
        trace) _sluice_words --for --max --output --json --config --socket --help ;;
        metrics) _sluice_words --config --socket --help ;;
        events) _sluice_words --since --json --config --socket --help ;;
        add) _sluice_words --to --name --key --context --header --url --upload-url --again --json --config --socket --help ;;
        pause) _sluice_words --all --folder --destination --for --after-part --json --config --socket --help ;;
        resume) _sluice_words --all --folder --destination --json --config --socket --help ;;
        cancel) _sluice_words --all --folder --destination --json --config --socket --help ;;
        retry) _sluice_words --all --folder --destination --json --config --socket --help ;;
        priority) _sluice_words --set --all --folder --destination --json --config --socket --help ;;
        remove) _sluice_words --json --config --socket --help ;;
        flush) _sluice_words --list --folder --destination --json --config --socket --help ;;
        allow) _sluice_words --folder --metered --quota --rule --rules --window --for --end --json --config --socket --help ;;
        limit) _sluice_words --for --json --config --socket --help ;;
        reload) _sluice_words --json --config --socket --help ;;
        rescan) _sluice_words --folder --wait --json --config --socket --help ;;
        folder) _sluice_words --json --config --socket --help ;;
        systemd-paths) _sluice_words --config --install --help ;;
        completions) _sluice_words --config --socket --json --help ;;
        version) _sluice_words --json --config --help ;;
        help) _sluice_words --help ;;
    esac
}

_sluice_operands() {
    case $verb in
        '') _sluice_words run init demo check destinations config report edit doctor hook rebuild receive status top web list show why plan policy usage quota remote orphans trace metrics events add pause resume cancel retry priority remove flush allow limit reload rescan folder systemd-paths completions version help ;;
        check) _sluice_ask destinations ;;
        destinations) _sluice_words tus resumable-http directory chunked-form vimeo s3 oss apsara-vod ;;
        config) _sluice_words schema ;;
        show) _sluice_ask uploads; compopt -o default ;;
        why) _sluice_ask uploads; compopt -o default ;;
        policy) _sluice_words explain test ;;
        usage) _sluice_words set ;;
        quota) _sluice_ask destinations ;;
        remote) _sluice_ask destinations ;;
        orphans) _sluice_ask destinations ;;
        trace) _sluice_ask destinations ;;
        add) compopt -o default ;;
        pause) _sluice_ask uploads ongoing; compopt -o default ;;
        resume) _sluice_ask uploads ongoing; compopt -o default ;;
        cancel) _sluice_ask uploads ongoing; compopt -o default ;;
        retry) _sluice_ask uploads failed; compopt -o default ;;
        priority) _sluice_ask uploads ongoing; compopt -o default ;;
        remove) _sluice_ask uploads completed; compopt -o default ;;
        allow) _sluice_ask uploads ongoing; compopt -o default ;;
        limit) _sluice_words off ;;
        completions) _sluice_words bash zsh fish ;;
        help) _sluice_words run init demo check destinations config report edit doctor hook rebuild receive status top web list show why plan policy usage quota remote orphans trace metrics events add pause resume cancel retry priority remove flush allow limit reload rescan folder systemd-paths completions version help ;;
    esac
}

_sluice() {
    local cur=${COMP_WORDS[COMP_CWORD]} verb='' option='' only='' glued='' word i
    local -a asking=()
    COMPREPLY=()
    # COMP_WORDBREAKS splits at `=` and `:`. After an option they precede its value, else they are part of a word.
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == [=:] ]]; then
            [[ $option ]] || glued=yes
        elif [[ $glued ]]; then
            glued=''
        elif [[ $option ]]; then
            [[ $option == --config || $option == --socket ]] && asking+=("$option" "$word")
            option=''
        elif [[ $only ]]; then
            [[ $verb ]] || verb=$word
        elif [[ $word == -- ]]; then
            only=yes
        elif [[ $word == -* ]]; then
            _sluice_takes "$verb" "$word" && option=$word
        elif [[ ! $verb ]]; then
            verb=$word
        fi
    done
    if [[ $cur == [=:] ]]; then
        [[ $option ]] || return 0
        cur=''
    fi
    if [[ $glued ]]; then
        compopt -o default
    elif [[ $option ]]; then
        _sluice_value
    elif [[ $cur == -* && ! $only ]]; then
        _sluice_options
    else
        _sluice_operands
    fi
}

complete -F _sluice sluice
