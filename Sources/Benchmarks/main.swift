// `make bench` runs this. Arguments pick benchmarks by a part of their name: `make bench ONLY=core/`.
let wanted = CommandLine.arguments.dropFirst()
for benchmark in coreBenchmarks where wanted.isEmpty || wanted.contains(where: { benchmark.name.contains($0) }) {
    print(try await benchmark.measured())
}
