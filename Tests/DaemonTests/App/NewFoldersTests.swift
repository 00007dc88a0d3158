import API
import Core
import Linux
import TestKit
import Testing

@testable import Config
@testable import Daemon
@testable import Store
@testable import Watch

@Suite("Folders that are watched for the first time")
struct NewFoldersTests {
    @Test("existing files are ignored only in new folders with `existing: skip`, until the first scan")
    func skipping() async throws {
        let scene = try await ComponentScene { $0.folders[0].watch.existing = .skip }
        let firstWatch = NewFolders(store: scene.store)
        let settings = scene.parts.settings
        firstWatch.replace(try await firstWatch.find(in: settings))
        #expect(firstWatch.skipping(settings) == ["cam"])
        try await firstWatch.recordScan(of: ["cam"])
        #expect(try await firstWatch.find(in: settings) == ["door"])
    }

    @Test("the scan of a previously watched folder is not recorded")
    func known() async throws {
        let scene = try await ComponentScene()
        let firstWatch = NewFolders(store: scene.store)
        firstWatch.replace(["door"])
        try await firstWatch.recordScan(of: ["cam"])
        #expect(try await firstWatch.find(in: scene.parts.settings) == ["cam", "door"])
    }
}
