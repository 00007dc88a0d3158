/// The version of everything in this package, as `sluice version` and the status say it.
package let sluiceVersion = "0.1.0"

/// When this version was made, or a little earlier: a clock that shows less is not set.
package let sluiceIsYoungerThan = CivilDay(year: 2026, month: 11, day: 1) ?? CivilDay(number: 0)
