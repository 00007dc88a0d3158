// swift-tools-version: 6.0
//
// The modules. A module imports what stands to its right and nothing
// else, which `--explicit-target-dependency-import-check error` enforces. docs/architecture/README.md has the map.
import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),  // `any P` wherever dispatch is dynamic
    .enableUpcomingFeature("InternalImportsByDefault"),  // a module does not leak what it imports
    .enableUpcomingFeature("MemberImportVisibility"),  // a file imports what it uses
]

func module(_ name: String, _ below: [Target.Dependency], embedding folder: String? = nil) -> Target {
    .target(
        name: name, dependencies: below, exclude: folder.map { [$0] } ?? [],
        swiftSettings: strict + (unhurried.contains(name) ? small : []) + (decisive.contains(name) ? fastTests : []),
        plugins: folder == nil ? [] : ["EmbedPage"])
}

/// Modules whose decisions tests try in thousands of cases: the debug build optimizes them too.
let decisive: Set = ["Core", "Digests"]
let fastTests: [SwiftSetting] = [.unsafeFlags(["-O"], .when(configuration: .debug))]

/// Modules that wait for others most of their time: they are compiled for size, which counts more than the speed they lose.
let unhurried: Set = [
    "Store", "Watch", "Names", "Transport", "Egress", "Staging", "Linux", "Core", "Config", "WebServer", "Credentials",
    "Notices",
    "Media",
    "Destinations", "Receiver", "API", "Daemon", "Control", "Shell",
]
let small: [SwiftSetting] = [.unsafeFlags(["-Osize"], .when(configuration: .release))]

func tests(_ name: String, _ subject: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: subject + ["TestKit", "TestTraits"], swiftSettings: strict)
}

func library(_ name: String, pkgConfig: String, apt: String) -> Target {
    .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([apt])])
}

let package = Package(
    name: "sluice",
    products: [.executable(name: "sluice", targets: ["sluice"])],
    targets: [
        // C, and nothing but C.
        .target(
            name: "CLinux",
            cSettings: [
                .define("_GNU_SOURCE"), .define("_FORTIFY_SOURCE", to: "2", .when(configuration: .release)),
                .unsafeFlags(["-fstack-protector-strong"]),
            ]),
        library("CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
        library("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
        library("CExpat", pkgConfig: "expat", apt: "libexpat1-dev"),
        library("CZlib", pkgConfig: "zlib", apt: "zlib1g-dev"),
        library("CCares", pkgConfig: "libcares", apt: "libc-ares-dev"),
        library("CYAML", pkgConfig: "yaml-0.1", apt: "libyaml-dev"),
        library("CMicroHTTPD", pkgConfig: "libmicrohttpd", apt: "libmicrohttpd-dev"),
        library("CCrypto", pkgConfig: "libcrypto", apt: "libssl-dev"),

        // Decisions: values in, values out.
        module("Core", []),

        // Contact with the world, one kind of world each.
        module("Linux", ["Core", "CLinux"]),
        module("Digests", ["Core", "CCrypto"]),
        module("Config", ["Core", "Linux", "CYAML"]),
        module("Store", ["Core", "Linux", "CSQLite"]),
        module("Names", ["Core", "Linux", "CCares"]),
        module("Transport", ["Core", "Linux", "Names", "CCurl", "CZlib"]),
        module("Egress", ["Core", "Linux", "Transport"]),
        module("WebServer", ["Core", "Linux", "CMicroHTTPD"]),
        module("Credentials", ["Core", "Linux"]),
        module("Notices", ["Core", "Linux", "Transport", "Credentials", "Digests"]),

        // The file's journey.
        module("Media", ["Core", "Linux"]),
        module("Watch", ["Core", "Linux", "Media"]),
        module("Staging", ["Core", "Linux", "Digests"]),
        module("Destinations", ["Core", "Linux", "Transport", "Credentials", "Digests", "CExpat"]),
        module("Receiver", ["Core", "Linux", "Digests", "WebServer"]),

        // What the daemon and its clients exchange: requests, views and events, and their JSON.
        module("API", ["Core"]),

        // The only module that sees all the others of a file's journey.
        module(
            "Daemon",
            [
                "API", "Core", "Linux", "Config", "Store", "Names", "Transport", "Egress", "Media", "Watch", "Staging",
                "Destinations",
                "Credentials", "Digests", "Notices",
            ]),
        // The files of its folder Web are compressed and become part of the program.
        module("Control", ["API", "Core", "Linux", "Digests", "WebServer", "Transport"], embedding: "Web"),
        .plugin(name: "EmbedPage", capability: .buildTool()),
        // The command line; the executable is its `main` alone, so that tests reach everything else.
        module(
            "Shell",
            [
                "API", "Core", "Linux", "Digests", "Config", "Destinations", "Credentials", "Daemon", "Control",
                "Receiver",
                "Store",
                "Transport", "Watch", "WebServer",
            ]),
        .executableTarget(name: "sluice", dependencies: ["Shell"], swiftSettings: strict),

        // Only tests and figures import it.
        module("TestKit", ["Core", "Linux", "Transport", "CLinux", "CZlib", "Digests"]),

        // What the runner of the tests is told; no figure can import it.
        module("TestTraits", ["TestKit", "Linux"]),

        // Figures, one line each; `make bench`.
        .executableTarget(
            name: "Benchmarks",
            dependencies: ["API", "Core", "Linux", "Store", "Daemon", "Control", "Transport", "Watch", "TestKit"],
            swiftSettings: strict),

        // The manual pages; `make man`.
        .executableTarget(
            name: "Manual", dependencies: ["Config", "Core", "Destinations", "Linux", "Shell"], swiftSettings: strict),

        tests("CoreTests", ["Core", "Linux"]),
        // The built binary and its processes, killed at any moment.
        tests("EndToEndTests", ["Core", "Linux", "Transport", "Digests", "CSQLite"]),
        tests("LinuxTests", ["Core", "Linux"]),
        tests("ControlTests", ["API", "Core", "Linux", "Daemon", "Control", "WebServer", "Transport"]),
        tests(
            "ShellTests",
            ["API", "Config", "Core", "Destinations", "Digests", "Linux", "Daemon", "Control", "Media", "Shell"]),
        tests("DigestsTests", ["Core", "Digests"]),
        tests("WebServerTests", ["Core", "Linux", "WebServer"]),
        tests("ReceiverTests", ["Core", "Digests", "Linux", "Receiver", "WebServer"]),
        tests("ConfigTests", ["Config", "Core", "Linux"]),
        tests("NamesTests", ["Core", "Linux", "Names"]),
        tests("TransportTests", ["Transport", "Names", "Core", "Linux", "CCurl"]),
        tests("EgressTests", ["Core", "Egress", "Linux", "Transport"]),
        tests("WatchTests", ["Watch", "Linux", "Core", "Media"]),
        tests("MediaTests", ["Core", "Linux", "Media"]),
        tests("StoreTests", ["Core", "Store"]),
        // What stays the same from one version to the next: the words that others rely on, and the state of an earlier program.
        tests(
            "GoldenTests",
            [
                "API", "Config", "Control", "Core", "Daemon", "Destinations", "Digests", "Linux", "Receiver", "Shell",
                "Store",
                "Transport",
            ]),
        // What many rows cost, in steps and plans.
        tests("ScaleTests", ["Benchmarks", "Core", "Linux", "Store"]),
        tests(
            "DaemonTests",
            [
                "API", "Config", "Core", "Credentials", "Daemon", "Destinations", "Egress", "Linux", "Media", "Names",
                "Notices",
                "Staging",
                "Store",
                "Transport",
                "Watch",
            ]),
        tests("StagingTests", ["Core", "Digests", "Linux", "Staging"]),
        tests("NoticesTests", ["Core", "Credentials", "Digests", "Linux", "Notices", "Transport"]),
        tests("CredentialsTests", ["Credentials", "Core", "Linux"]),
        tests(
            "DestinationsTests",
            ["Config", "Destinations", "Digests", "Receiver", "Transport", "Credentials", "Core", "Linux", "WebServer"]),
    ],
    swiftLanguageModes: [.v6]
)
