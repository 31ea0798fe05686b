// `npm run golden`: writes the golden data anew. What changes in it is read before it is committed.
import { Effect } from "effect"
import { writeGolden } from "./files.ts"
import { goldenFiles } from "./golden.ts"

const files = new Map<string, string>()
for (const { path, text } of goldenFiles) files.set(path, await Effect.runPromise(text))
writeGolden(files)
process.stdout.write(`${files.size} files written\n`)
process.exit()
