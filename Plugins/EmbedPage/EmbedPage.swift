import Foundation
import PackagePlugin

/// Makes the files of the web page part of the program: compressed, in one Swift file.
@main
struct EmbedPage: BuildToolPlugin {
    /// Those whose type `PageAssets` knows.
    private let endings: Set<String> = ["css", "html", "js", "svg"]

    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let root = context.package.directoryURL
        let script = root.appending(path: "scripts/embed-page")
        let folder = root.appending(path: "Sources/Control/Web")
        // Editors leave files of their own beside these: `.main.js.swp`, `main.js~`.
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .filter { endings.contains($0.pathExtension) && !$0.lastPathComponent.hasPrefix(".") }
            .sorted { $0.path < $1.path }
        let output = context.pluginWorkDirectoryURL.appending(path: "EmbeddedPage.swift")
        return [
            .buildCommand(
                displayName: "Embedding the web page", executable: URL(fileURLWithPath: "/bin/sh"),
                arguments: [script.path, output.path] + files.map(\.path), inputFiles: [script] + files,
                outputFiles: [output])
        ]
    }
}
