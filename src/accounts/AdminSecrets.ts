/**
 * What the nodes of a gateway share about logins of operators: wrong credentials, and recent right ones. (The secret that signs
 * JWTs is part of the shared configuration.)
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import { createHmac, randomBytes } from "node:crypto"
import { Store } from "../cluster/store/Store.ts"
import { makeMarks } from "../config/marks.ts"
import { notShared, type SharedFailures, type SharedLogins } from "./CredentialThrottle.ts"

/** Milliseconds that a right credential is kept. */
const day = 86_400_000
/** A credential that is right again is extended at most once within this time, in milliseconds. */
const hour = 3_600_000
/** Bounds the sources; the one that was right longest ago is dropped first. */
const mostSources = 10_000
/** Bounds the credentials of one source. */
const mostOfSource = 16

/** Credentials that were right within the last day, by source. Sources and credentials are hashes under a secret key. */
class RightCredentials {
  /** Expiry times by source and hash; sources roughly in the order in which they were right. */
  readonly #sources = new Map<string, Map<string, number>>()

  /** Whether any credential was right from a source. */
  knows(source: string, now: number): boolean {
    for (const until of this.#sources.get(source)?.values() ?? []) if (until > now) return true
    return false
  }

  has(source: string, hash: string, now: number): boolean {
    return (this.#sources.get(source)?.get(hash) ?? 0) > now
  }

  /** Records a right credential; returns its new expiry, or `undefined` if the known expiry is late enough. */
  add(source: string, hash: string, now: number): number | undefined {
    if (this.has(source, hash, now + day - hour)) return undefined
    const until = now + day
    this.record(source, hash, until)
    return until
  }

  /** Records a credential with the expiry of another node. */
  record(source: string, hash: string, until: number): void {
    const known = this.#sources.get(source) ?? new Map<string, number>()
    const latest = Math.max(until, known.get(hash) ?? 0)
    known.delete(hash)
    known.set(hash, latest)
    if (known.size > mostOfSource) known.delete(known.keys().next().value!)
    this.#sources.delete(source)
    this.#sources.set(source, known)
    if (this.#sources.size > mostSources) this.#sources.delete(this.#sources.keys().next().value!)
  }

  /** All credentials that are valid at a time. */
  all(now: number): ReadonlyArray<readonly [source: string, hash: string, until: number]> {
    return [...this.#sources].flatMap(([source, known]) =>
      [...known].flatMap(([hash, until]) => until > now ? [[source, hash, until] as const] : [])
    )
  }
}

export class AdminSecrets extends Context.Service<
  AdminSecrets,
  SharedLogins & {
    /** Milliseconds that this node's clock is behind the clock of the store. */
    readonly clockOffset: () => number
    /** What nodes share about wrong business keys. */
    readonly keys: SharedFailures
  }
>()("model-gateway/admin/AdminSecrets") {
  /** For a single process. */
  static readonly layer: Layer.Layer<AdminSecrets> = Layer.effect(
    AdminSecrets,
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()
      const key = randomBytes(32)
      const hashOf = (text: string) => createHmac("sha256", key).update(text).digest("base64url")
      const rights = new RightCredentials()
      return AdminSecrets.of({
        ...notShared,
        clockOffset: () => 0,
        keys: notShared,
        right: (name, credential) => void rights.add(name, hashOf(credential), now()),
        wasRight: (name, credential) => rights.has(name, hashOf(credential), now()),
        knowsRight: (name) => rights.knows(name, now())
      })
    })
  )

  /** For nodes that share a store; names and credentials are hashed with the store's key. */
  static readonly layerShared: Layer.Layer<AdminSecrets, never, Store> = Layer.effect(
    AdminSecrets,
    Effect.gen(function*() {
      const store = yield* Store
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe() + store.clockOffset()
      const fork = yield* FiberSet.makeRuntime<never, void, never>()
      const hashOf = (credential: string) => store.secrets.nameOf(`right ${credential}`)
      const rights = new RightCredentials()
      const marks = yield* makeMarks(
        store,
        "right-logins",
        {
          known: (now) => rights.all(now).map(([source, hash, until]) => [`${source} ${hash}`, until] as const),
          take: ([name, until]) => {
            const [source = "", hash = ""] = name.split(" ")
            rights.record(source, hash, until)
          }
        },
        Effect.void
      )
      /** Wrong credentials of a kind of messages. */
      const failuresOf = (kind: "wrong" | "wrong-key"): SharedFailures => ({
        nameOf: (address) => store.secrets.nameOf(`address ${address}`),
        wrong: (name) => fork(Effect.ignore(store.run("tell", "*", `${kind} ${store.membership.node} ${name}`))),
        onWrong: (listener) =>
          store.listen((event) => {
            if (event._tag === kind && event.node !== store.membership.node) listener(event.address)
          })
      })
      return AdminSecrets.of({
        ...failuresOf("wrong"),
        clockOffset: store.clockOffset,
        keys: failuresOf("wrong-key"),
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
