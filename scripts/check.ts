// `npm run check [-- NAME]`: runs all checks, or the one of a name, such as `types`, without the tests.
import { checksNamed, runChecks } from "./checks.ts"

const named = process.argv.slice(2).join(" ")
if (checksNamed(named).length === 0) {
  console.error(`There is no check ${named}. The checks are: ${checksNamed("").join(", ")}`)
  process.exitCode = 1
} else {
  const failed = await runChecks(undefined, named)
  if (failed.length > 0) process.exitCode = 1
}
