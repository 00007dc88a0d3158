/// A shell with completions. They are made from the tables that the parser uses, so every completion is a valid word.
///
/// The scripts are also in packaging/completions, for packages; a test compares them.
enum CompletionScript: String, CaseIterable {
    case bash, zsh, fish

    func text(_ verbs: [Verb]) -> String {
        switch self {
        case .bash: bashScript(verbs)
        case .zsh: zshScript(verbs)
        case .fish: fishScript(verbs)
        }
    }
}

/// `text` in single quotes for bash and zsh.
func shellQuoted(_ text: String) -> String { "'" + text.replacing("'", with: #"'\''"#) + "'" }

/// Options that may come before the verb.
private let before = Option.client.filter { $0.value != nil }

private func bashScript(_ verbs: [Verb]) -> String {
    var taking = [(verb: "", options: before)]
    taking += verbs.map { ($0.name, $0.options.filter { $0.value != nil }) }
    let takes = taking.filter { !$0.options.isEmpty }.map { verb, options in
        options.map { "\"\(verb) --\($0.name)\"" }.joined(separator: " | ") + ") return 0 ;;"
    }
    var values: [CompletionKind: [String]] = [:]
    var order: [CompletionKind] = []
    for (verb, options) in taking {
        for option in options where option.hint != .nothing {
            if values[option.hint] == nil { order.append(option.hint) }
            // One pattern for all verbs, where the option is the same for each.
            let isSame = taking.allSatisfy {
                $0.options.allSatisfy { $0.name != option.name || $0.hint == option.hint }
            }
            let pattern = isSame ? "*\" --\(option.name)\"" : "\"\(verb) --\(option.name)\""
            if values[option.hint]?.contains(pattern) != true { values[option.hint, default: []].append(pattern) }
        }
    }
    let valueCases = order.map { hint in
        "\((values[hint] ?? []).joined(separator: " | ")))\n            \(bashAction(hint, verbs)) ;;"
    }
    let optionCases = verbs.map { verb in
        "\(verb.name)) _sluice_words \(verb.options.map { "--" + $0.name }.joined(separator: " ")) ;;"
    }
    let operandCases = verbs.filter { $0.operandHint != .nothing }.map { verb in
        "\(verb.name)) \(bashAction(verb.operandHint, verbs)) ;;"
    }
    func cases(_ lines: [String]) -> String { lines.map { "        " + $0 }.joined(separator: "\n") }
    let general = before.map { "--" + $0.name } + ["--help", "--version"]
    return """
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
                _sluice_words "${line%%$'\\t'*}"
            done < <("${COMP_WORDS[0]}" completions "$@" "${asking[@]}" 2>/dev/null </dev/null)
        }

        # True if the option takes a value.
        _sluice_takes() {
            case "$1 $2" in
        \(cases(takes))
            esac
            return 1
        }

        _sluice_value() {
            case "$verb $option" in
        \(cases(valueCases))
            esac
        }

        _sluice_options() {
            case $verb in
                '') _sluice_words \(general.joined(separator: " ")) ;;
        \(cases(optionCases))
            esac
        }

        _sluice_operands() {
            case $verb in
                '') _sluice_words \(verbs.map(\.name).joined(separator: " ")) ;;
        \(cases(operandCases))
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

        """
}

/// Files are completed by bash itself, which knows about quotes, blanks and `~`.
private func bashAction(_ hint: CompletionKind, _ verbs: [Verb]) -> String {
    if let words = hint.fixed(verbs) { return "_sluice_words " + words.joined(separator: " ") }
    if hint == .directory { return "compopt -o dirnames" }
    let asking = hint.question.map { "_sluice_ask " + $0.joined(separator: " ") }
    return [asking, hint.takesFiles ? "compopt -o default" : nil].compactMap(\.self).joined(separator: "; ")
}
