/**
 * What V8's young collections do: of what a request makes, how much is still there after one although the request is long
 * over. Requests come one at a time, so that next to nothing of it is in use.
 */
import { type Row, table } from "./table.ts"
import { ask, chat, messages, withTargets } from "./targets.ts"

/** A collection by V8's own line: MB before and after it, and its milliseconds. */
interface Collection {
  readonly isYoung: boolean
  readonly before: number
  readonly after: number
  readonly millis: number
}

const collectionOf = (line: string): Collection | undefined => {
  const found = /(Scavenge|Mark-Compact)[^\d]*([\d.]+) \([\d.]+\) -> ([\d.]+) .*?, ([\d.]+) \/ /.exec(line)
  if (found === null) return undefined
  return {
    isYoung: found[1] === "Scavenge",
    before: Number(found[2]),
    after: Number(found[3]),
    millis: Number(found[4])
  }
}

const warmUp = 1500
const count = 3000

/** Prints what requests make, what of it outlives a young collection, and the time that those take. */
export const collectionsBench = async (): Promise<void> => {
  const collections: Array<Collection> = []
  await withTargets(async ({ openai, session }) => {
    const rows: Array<Row> = []
    for (
      const [name, target, what] of [
        ["chat, whole", session, chat("!say short", false)],
        ["chat, stream", session, chat("!say short", true)],
        ["chat, whole, openai", openai, chat("!say short", false)],
        ["messages, whole, openai", openai, messages("!say short", false)]
      ] as const
    ) {
      for (let i = 0; i < warmUp; i++) await ask(target, what)
      collections.length = 0
      for (let i = 0; i < count; i++) await ask(target, what)
      let made = 0
      let kept = 0
      let millis = 0
      for (let i = 1; i < collections.length; i++) {
        const last = collections[i - 1]!
        const next = collections[i]!
        // A full collection takes away what was kept before it.
        if (!last.isYoung || !next.isYoung) continue
        made += next.before - last.after
        kept += Math.max(0, next.after - last.after)
        millis += next.millis
      }
      rows.push([name, made / count * 1000, kept / count * 1000, made === 0 ? Number.NaN : millis / made])
    }
    process.stdout.write(`${table(["kB a request", "made", "kept", "ms of collections a MB made"], rows)}\n`)
  }, (line) => {
    const collection = collectionOf(line)
    if (collection !== undefined) collections.push(collection)
  })
}
