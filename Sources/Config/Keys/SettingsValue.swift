internal import Core

/// A value that has one form in the file, wherever it stands.
protocol SettingsValue: Equatable, Sendable {
    var inFile: WrittenValue { get }
}

extension Array: SettingsValue where Element: SettingsValue {
    var inFile: WrittenValue { .list(map(\.inFile)) }
}
extension Bool: SettingsValue { var inFile: WrittenValue { .flag(self) } }
extension Duration: SettingsValue { var inFile: WrittenValue { .plain(writtenTime(self)) } }
extension FilePath: SettingsValue { var inFile: WrittenValue { .text(text ?? display) } }
extension HardwareAddress: SettingsValue { var inFile: WrittenValue { .text("\(self)") } }
extension Int: SettingsValue { var inFile: WrittenValue { .number(Int64(self)) } }
/// An amount of bytes.
extension Int64: SettingsValue { var inFile: WrittenValue { .plain(writtenBytes(self)) } }
extension IPSubnet: SettingsValue { var inFile: WrittenValue { .text("\(self)") } }
extension ListenAddress: SettingsValue { var inFile: WrittenValue { .text("\(self)") } }
extension MarkerName: SettingsValue { var inFile: WrittenValue { .text(source) } }
extension UnsureReleaseRule: SettingsValue { var inFile: WrittenValue { .plain(written) } }
extension String: SettingsValue { var inFile: WrittenValue { .text(self) } }
extension Template: SettingsValue { var inFile: WrittenValue { .text(source) } }
