/// The version of everything in this package, as `sluice version` and the status say it.
package let sluiceVersion = "0.1.0"
