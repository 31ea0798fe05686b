/**
 * What the nodes of a gateway must know alike of their operators' logins: who has been wrong, and who right. (The secret that
 * JWTs are signed with comes with the configuration that they share.)
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import { createHmac, randomBytes } from "node:crypto"
import { makeMarks } from "../../cluster/store/marks.ts"
import { Store } from "../../cluster/store/Store.ts"
import { Rights } from "./Rights.ts"
import type { SharedTurns } from "./turns.ts"

export class AdminSecrets extends Context.Service<
  AdminSecrets,
  SharedTurns & {
    /** Milliseconds by which this node's clock is behind the one that all nodes go by. */
    readonly clockOffset: () => number
  }
>()("model-gateway/admin/AdminSecrets") {
  /** One process has nobody to tell. */
  static readonly layer: Layer.Layer<AdminSecrets> = Layer.effect(
    AdminSecrets,
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()
      const key = randomBytes(32)
      const hashOf = (text: string) => createHmac("sha256", key).update(text).digest("base64url")
      const rights = new Rights()
      return AdminSecrets.of({
        clockOffset: () => 0,
        nameOf: (address) => address,
        wrong: () => undefined,
        onWrong: () => undefined,
        right: (name, credential) => void rights.add(name, hashOf(credential), now()),
        wasRight: (name, credential) => rights.has(name, hashOf(credential), now()),
        knowsRight: (name) => rights.knows(name, now())
      })
    })
  )

  /** The nodes of a store tell one another, by names that only they can make. */
  static readonly layerShared: Layer.Layer<AdminSecrets, never, Store> = Layer.effect(
    AdminSecrets,
    Effect.gen(function*() {
      const store = yield* Store
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe() + store.clockOffset()
      const fork = yield* FiberSet.makeRuntime<never, void, never>()
      const hashOf = (credential: string) => store.nameOf(`right ${credential}`)
      const rights = new Rights()
      const marks = yield* makeMarks(
        store,
        "right-logins",
        {
          known: (now) => rights.all(now).map(([source, hash, until]) => [`${source} ${hash}`, until] as const),
          take: ([name, until]) => {
            const [source = "", hash = ""] = name.split(" ")
            rights.take(source, hash, until)
          }
        },
        Effect.void
      )
      return AdminSecrets.of({
        clockOffset: store.clockOffset,
        nameOf: (address) => store.nameOf(`address ${address}`),
        wrong: (name) => fork(Effect.ignore(store.run("tell", `wrong ${store.node} ${name}`))),
        onWrong: (listener) =>
          store.listen((kind, rest) => {
            const [from, name] = rest.split(" ")
            if (kind === "wrong" && from !== store.node && name !== undefined) listener(name)
          }),
        right: (name, credential) => {
          const hash = hashOf(credential)
          const until = rights.add(name, hash, now())
          if (until !== undefined) fork(Effect.asVoid(marks.mark([`${name} ${hash}`, until])))
        },
        wasRight: (name, credential) => rights.has(name, hashOf(credential), now()),
        knowsRight: (name) => rights.knows(name, now())
      })
    })
  )
}
