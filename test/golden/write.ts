// `npm run golden`: writes the golden frames anew. What changes in them is read before it is committed.
import { Effect } from "effect"
import { goldenFiles } from "./exchange.ts"
import { writeGolden } from "./files.ts"

const files = await Effect.runPromise(goldenFiles)
writeGolden(files)
process.stdout.write(`${files.size} files written\n`)
process.exit()
