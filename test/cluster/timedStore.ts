/** The store of a node as a test drives it: the scripts run on a real server, at the time that the test gives. */
import * as Effect from "effect/Effect"
import { hash } from "node:crypto"
import { makeEncryption } from "../../src/cluster/store/encryption.ts"
import { StoreListeners } from "../../src/cluster/store/messages.ts"
import { scripts } from "../../src/cluster/store/scripts.ts"
import type { StoreShape } from "../../src/cluster/store/StoreShape.ts"
import { oracle, type ScriptNodes } from "./scripts.ts"
import { storeKey } from "./support.ts"

const nothing = () => undefined

/** The store of the first node of `cluster`. */
export class TimedStore {
  readonly #cluster: ScriptNodes
  readonly #listeners = new StoreListeners()
  readonly #running = new Set<Promise<unknown>>()
  /** Scripts that the node has run. */
  #count = 0

  constructor(cluster: ScriptNodes) {
    this.#cluster = cluster
  }

  readonly #tracked = <A>(promise: Promise<A>): Promise<A> => {
    this.#count++
    this.#running.add(promise)
    return promise.finally(() => this.#running.delete(promise))
  }

  readonly shape: StoreShape = {
    secrets: {
      ...makeEncryption(storeKey, undefined),
      nameOf: (text) => hash("sha256", text).slice(0, 16),
      agree: (_, ours) => Effect.succeed(ours)
    },
    membership: {
      node: "one",
      holds: nothing,
      bringsBack: nothing,
      setRevision: nothing,
      revision: () => 1,
      watchDraining: nothing,
      isDraining: () => false,
      countLostWrite: nothing,
      counts: () => ({ lostWrites: 0, scripts: new Map() })
    },
    epoch: () => "e",
    status: () => ({ state: "up", since: 0, url: "", version: "", roundTrip: 0, detail: undefined }),
    isUp: () => true,
    clockOffset: () => 0,
    run: (name, ...args) => Effect.promise(() => this.#tracked(this.#cluster.run(scripts[name], "one", ...args))),
    send: (command, ...args) => Effect.promise(() => this.#tracked(this.#cluster.send(command, ...args))),
    bulk: () => Effect.die("not called"),
    listen: (listener) => this.#listeners.listen(listener)
  }

  /** Lets everything happen that needs no time: scripts, their messages, and what they cause at the node. */
  readonly settled: Effect.Effect<void> = Effect.gen({ self: this }, function*() {
    for (let before = -1; before !== this.#count;) {
      before = this.#count
      for (let i = 0; i < 12; i++) yield* Effect.yieldNow
      while (this.#running.size > 0) yield* Effect.promise(() => Promise.all(this.#running))
      // Every script first serves what is due.
      yield* Effect.promise(() => this.#cluster.run(oracle, "one", "none"))
      this.#listeners.receive(yield* Effect.promise(() => this.#cluster.messages("one")))
      for (let i = 0; i < 12; i++) yield* Effect.yieldNow
    }
  })
}
