/// What a YAML file is for, in messages that concern the whole file.
enum DocumentKind {
    case configuration, answers

    var missing: String {
        switch self {
        case .configuration: "does not exist; name another with --config FILE or $SLUICE_CONFIG"
        case .answers: "does not exist; name another with --from FILE"
        }
    }

    var empty: String {
        switch self {
        case .configuration: "is empty; a configuration begins with `version: 1`"
        case .answers: "is empty; a file of answers has lines like `folder: /srv/camera`"
        }
    }
}
