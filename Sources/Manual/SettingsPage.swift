import Config
import Core
import Destinations
import Shell

/// sluice.yaml(5), from the tables of keys.
func settingsPage(date: String) -> String {
    var page = Page("SLUICE.YAML", section: 5, date: date, heading: "File Formats")
    page.name("sluice.yaml", "the configuration of the upload daemon sluice(1)")
    page.section("Synopsis")
    page.usage(["/etc/sluice/sluice.yaml", "/etc/sluice/config.d/*.yaml"])
    page.section("Description")
    page.text(
        "The file is YAML. `sluice check` examines it and everything that it names, `sluice config` prints it with all "
            + "defaults, and `sluice reload` makes the daemon read it again. Unknown keys are errors.")
    page.paragraph(
        "A file in `config.d` adds folders and destinations. A path in this page such as `folders[].name` means the key "
            + "`name` of each item of `folders`.")
    page.paragraph("The smallest useful file:")
    page.example([
        "version: 1", "folders:", "  - name: camera", "    path: /srv/camera", "    upload_to: [nas]", "destinations:",
        "  nas: {type: directory, path: /mnt/nas/archive}",
    ])
    page.section("Keys")
    for mapping in SettingsReference.mappings {
        page.part(mapping.path.isEmpty ? "the top of the file" : mapping.path)
        for key in mapping.keys { page.item(key.name, text(of: key)) }
    }
    page.section("Destinations")
    page.text(
        "Each destination has a `type`. Besides the keys of `destinations.*` above it has these keys of its type:")
    for type in DestinationTable.builtIn.map(\.type) {
        page.part("type: \(type.name)")
        page.text("\(type.summary).")
        for preset in type.presets { page.item("preset: \(preset.name)", preset.summary) }
        for key in type.keys.flatMap(\.flat) { page.item(key.name, key.summaryText) }
    }
    page.section("Files")
    for (path, meaning) in files { page.item(path, meaning) }
    page.section("See also")
    page.text("`sluice`(1)")
    return page.text
}

private func text(of key: SettingsReference.Key) -> String {
    let fallback = key.isRequired ? " Required." : key.defaultText.map { " Default: \($0)." } ?? ""
    return "\(key.summary). Takes: \(key.kind.text).\(fallback)"
}
