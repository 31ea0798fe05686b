/**
 * How much memory of finished requests survives V8's young collections. Requests run one at a time, so that almost all of it is
 * garbage.
 */
import { type Row, table } from "./table.ts"
import { ask, chat, messages, type NodeOptions, withTargets } from "./targets.ts"

/** A collection from V8's trace line: MB before and after, and milliseconds. */
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

/** Prints what requests allocate, how much of it survives a young collection, and the time of collections. */
export const collectionsBench = async (): Promise<void> => {
  const collections: Array<Collection> = []
  await withTargets(async ({ gateway }) => {
    const options: NodeOptions = {
      flags: ["--trace-gc"],
      heard: (line) => {
        const collection = collectionOf(line)
        if (collection !== undefined) collections.push(collection)
      }
    }
    const session = await gateway("session", "all off", options)
    const openai = await gateway("openai", "all off", options)
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
        // A full collection removes what earlier young collections kept.
        if (!last.isYoung || !next.isYoung) continue
        made += next.before - last.after
        kept += Math.max(0, next.after - last.after)
        millis += next.millis
      }
      rows.push([name, made / count * 1000, kept / count * 1000, made === 0 ? Number.NaN : millis / made])
    }
    process.stdout.write(`${table(["kB per request", "allocated", "kept", "ms of collections per MB"], rows)}\n`)
  })
}
