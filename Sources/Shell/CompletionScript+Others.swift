// The scripts for zsh and fish, which also show the meaning of each word.

func zshScript(_ verbs: [Verb]) -> String {
    let cases = verbs.map { verb in
        let specs = verb.options.map { zshOption($0, verbs) } + zshOperands(verb, verbs)
        return "    (\(verb.name))\n        _arguments -S \\\n"
            + specs.map { "            " + $0 }.joined(separator: " \\\n") + " ;;"
    }
    let before = Option.client.filter { $0.value != nil }.map { zshOption($0, verbs) }
    let named = verbs.map { "        " + shellQuoted("\($0.name):\($0.summary)") }
    return """
        #compdef sluice
        # zsh completion for sluice, made by `sluice completions zsh` from the program's own tables.

        # Names from the daemon or the configuration; no names if neither answers at once.
        _sluice_ask() {
            local -a given rows
            local i
            given=($sluice_given)
            for (( i = 2; i < CURRENT; i++ )); do
                case $words[i] in
                (--config|--socket) given+=($words[i] ${(Q)words[i+1]}) ;;
                (--config=*|--socket=*) given+=(${(Q)words[i]}) ;;
                esac
            done
            rows=(${(f)"$($sluice_program completions $@ $given 2>/dev/null </dev/null)"})
            rows=(${rows/$'\\t'/:})
            (( $#rows )) && _describe -t $1 $1 rows
        }

        _sluice_uploads() {
            local found=1
            _sluice_ask uploads $@ && found=0
            _files && found=0
            return found
        }

        _sluice_verbs() {
            local -a verbs
            verbs=(
        \(named.joined(separator: "\n"))
            )
            _describe -t verbs verb verbs
        }

        _sluice() {
            local curcontext=$curcontext state line i sluice_program=${(Q)words[1]}
            local -a sluice_given
            local -A opt_args
            _arguments -C -S \\
                \(before.joined(separator: " \\\n        ")) \\
                \(shellQuoted("(- *)--help[\(Option.help.summary)]")) \\
                '(- *)--version[the version of this program]' \\
                '1:verb:_sluice_verbs' '*:: :->rest'
            local found=$?
            [[ $state == rest ]] || return found
            for i in --config --socket; do
                [[ -n $opt_args[$i] ]] && sluice_given+=($i ${(Q)opt_args[$i]})
            done
            case $words[1] in
        \(cases.joined(separator: "\n"))
            esac
        }

        # Sourced, or loaded by compinit on first use.
        if [[ $funcstack[1] == _sluice ]]; then
            _sluice "$@"
        else
            compdef _sluice sluice
        fi

        """
}

private func zshOption(_ option: Option, _ verbs: [Verb]) -> String {
    var about = option.summary
    for special in ["\\", "[", "]"] { about = about.replacing(special, with: "\\" + special) }
    guard let value = option.value else { return shellQuoted("--\(option.name)[\(about)]") }
    return shellQuoted(
        (option.repeats ? "*" : "")
            + "--\(option.name)=[\(about)]:\(zshEscaped(value)):\(zshAction(option.hint, verbs))")
}

private func zshOperands(_ verb: Verb, _ verbs: [Verb]) -> [String] {
    guard verb.operandCount.upperBound > 0 else { return [] }
    let place = verb.operandCount.upperBound > 2 ? "*" : "1"
    return [shellQuoted("\(place):\(zshEscaped(verb.operands)):\(zshAction(verb.operandHint, verbs))")]
}

private func zshEscaped(_ text: String) -> String { text.replacing("\\", with: "\\\\").replacing(":", with: "\\:") }

private func zshAction(_ hint: CompletionKind, _ verbs: [Verb]) -> String {
    switch hint {
    case .nothing: return " "
    case .words, .verbs: return "(" + (hint.fixed(verbs) ?? []).joined(separator: " ") + ")"
    case .file: return "_files"
    case .directory: return "_files -/"
    case .uploads(let list): return " _sluice_uploads" + (list.map { " " + $0 } ?? "")
    case .folders, .destinations: return " _sluice_ask " + (hint.question ?? []).joined(separator: " ")
    }
}

func fishScript(_ verbs: [Verb]) -> String {
    let before = Option.client.filter { $0.value != nil }
    var lines = before.map { "complete -c sluice -n '__sluice_at' " + fishOption($0, verbs) }
    lines.append("complete -c sluice -n '__sluice_at' -l help -d \(fishQuoted(Option.help.summary))")
    lines.append("complete -c sluice -n '__sluice_at' -l version -d 'the version of this program'")
    for verb in verbs {
        lines.append("complete -c sluice -n '__sluice_at' -a \(verb.name) -d \(fishQuoted(verb.summary))")
    }
    for verb in verbs {
        lines.append("")
        let at = "complete -c sluice -n '__sluice_at \(verb.name)'"
        lines += verb.options.map { "\(at) " + fishOption($0, verbs) }
        let operands = fishChoices(verb.operandHint, verbs)
        if !operands.isEmpty { lines.append("\(at) " + operands) }
    }
    return """
        # fish completion for sluice, made by `sluice completions fish` from the program's own tables.

        # True if the verb on the command line is this one; without an argument, true if there is no verb.
        function __sluice_at
            set -l words (commandline -opc)
            set -l verb
            set -l value no
            for word in $words[2..]
                if test $value = yes
                    set value no
                else if contains -- $word \(before.map { "--" + $0.name }.joined(separator: " "))
                    set value yes
                else if not string match -q -- '-*' $word
                    set verb $word
                    break
                end
            end
            test "$verb" = "$argv[1]"
        end

        # Names from the daemon or the configuration; no names if neither answers at once.
        function __sluice_ask
            set -l words (commandline -opc)
            set -l given
            for i in (seq 2 (count $words))
                switch $words[$i]
                    case --config --socket
                        set -a given $words[$i] $words[(math $i + 1)]
                    case '--config=*' '--socket=*'
                        set -a given $words[$i]
                end
            end
            $words[1] completions $argv $given 2>/dev/null </dev/null
        end

        complete -c sluice -f
        \(lines.joined(separator: "\n"))

        """
}

private func fishOption(_ option: Option, _ verbs: [Verb]) -> String {
    let about = "-l \(option.name) -d \(fishQuoted(option.summary))"
    guard option.value != nil else { return about }
    let choices = fishChoices(option.hint, verbs)
    return about + (option.hint.takesFiles ? " -r" : " -x") + (choices.isEmpty ? "" : " " + choices)
}

/// The choices at this place, and whether names of files are among them.
private func fishChoices(_ hint: CompletionKind, _ verbs: [Verb]) -> String {
    var parts: [String] = []
    if let words = hint.fixed(verbs) { parts.append("-a \(fishQuoted(words.joined(separator: " ")))") }
    if hint == .directory { parts.append("-a '(__fish_complete_directories)'") }
    if let question = hint.question { parts.append("-a '(__sluice_ask \(question.joined(separator: " ")))'") }
    if hint.takesFiles { parts.append("-F") }
    return parts.joined(separator: " ")
}

private func fishQuoted(_ text: String) -> String {
    "'" + text.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
}
