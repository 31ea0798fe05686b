/** Lists that are merged over nodes of several versions. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { itemsOf, makeNodeItems, readItems } from "../../src/admin/nodeItems.ts"
import { Nodes } from "../../src/admin/nodes/Nodes.ts"
import { noPeers } from "../../src/admin/nodes/peers.ts"
import { noQuestion } from "../../src/admin/nodes/Query.ts"

const kind = {
  name: "words",
  question: noQuestion,
  head: Schema.fromJsonString(Schema.Struct({ more: Schema.Boolean })),
  items: itemsOf(Schema.Struct({ word: Schema.String }))
}

/** A node `own` whose peers send these texts. */
const nodesWith = (answers: { readonly [node: string]: string }) => ({
  id: "own",
  store: () => ({ state: "up" as const, url: "", version: "", revision: 1, round_trip_ms: 0, since: 0 }),
  isReady: () => true,
  list: Effect.succeed([]),
  watchDraining: () => undefined,
  metrics: Effect.undefined,
  peers: {
    ...noPeers,
    queryAll: () => Effect.succeed({ answers: new Map(Object.entries(answers)), missing: ["silent"] })
  }
})

describe("a list of several nodes", () => {
  it.effect("has the items that it understands, and counts nodes of another version as missing", () =>
    Effect.gen(function*() {
      const { merged } = yield* makeNodeItems
      const list = merged(
        kind,
        () => Effect.succeed({ head: { more: false }, items: [{ at: 2, place: 7, value: { word: "own" } }] })
      )
      const { heads, items, missing } = yield* list("")
      assert.deepStrictEqual([...heads.keys()], ["own", "newer", "mixed"])
      assert.deepStrictEqual(missing, ["lines", "older", "silent"])
      const { unread, values } = readItems(items)
      assert.deepStrictEqual(values.map(({ word }) => word), ["newer", "own", "mixed"])
      assert.deepStrictEqual([...unread], ["mixed"])
    }).pipe(Effect.provideService(
      Nodes,
      nodesWith({
        newer: "{\"more\":true,\"later\":1}\n3 1 {\"word\":\"newer\",\"later\":1}",
        mixed: "{\"more\":true}\n1 2 {\"word\":\"mixed\"}\n1 1 {\"term\":\"mixed\"}",
        older: "{\"rest\":true}\n3 1 {\"word\":\"older\"}",
        lines: "{\"more\":true}\nyesterday one {\"word\":\"lines\"}"
      })
    )))
})
