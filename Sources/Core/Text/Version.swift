/// The version of the whole package, as shown by `sluice version` and the status.
package let sluiceVersion = "0.1.0"

/// A date before this version was made: a clock that shows an earlier one is not set.
package let earliestPlausibleDay = CivilDay(year: 2026, month: 11, day: 1) ?? CivilDay(number: 0)
