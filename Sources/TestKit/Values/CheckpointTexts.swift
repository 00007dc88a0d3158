package import Core

// Tests read and write the fields of checkpoints as they are stored, by name. The program has types for them.

extension Checkpoint {
    package static let isFinished = "finished"
    package static let isOfAnother = "of_another"
    package static let perhapsTwice = "perhaps_twice"

    package subscript(field: String) -> String? {
        get { fields[field] }
        set { if let newValue { merge(Checkpoint([field: newValue])) } else { remove([field]) } }
    }
}
