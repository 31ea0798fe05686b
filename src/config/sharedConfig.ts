/**
 * The configuration of a cluster: one encrypted document in the store, replaced as a whole by each change, together with
 * the pool's accounts and limits; its revision, and how a node reaches it.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { StoreShape } from "../cluster/store/Store.ts"
import { isPersistent, StoreInvalid, StoreUnavailable } from "../cluster/store/StoreShape.ts"
import type { Backing, Superseded } from "./Backing.ts"
import { shareRuns } from "./clock/cooperative.ts"
import type { ConfigConflict, ConfigInvalid } from "./ConfigError.ts"
import { decodeConfig, type DecodedConfig } from "./decodeConfig.ts"
import type { Snapshot } from "./GatewayConfig.ts"
import { parseConfig, type RawConfig, stringifyConfig } from "./json.ts"
import { mergeConfigs } from "./merge.ts"
import { withoutStore } from "./rawConfig.ts"
import { makeJwtSecret } from "./secrets.ts"
import { sharedPools } from "./sharedAccounts.ts"
import {
  documentPlace,
  isGenuine,
  type Kept,
  type KeptDocument,
  proveDocument,
  readDocument,
  revisionAfter,
  type StoredDocument
} from "./sharedDocument.ts"
import type { Loaded } from "./sources.ts"

const place = documentPlace
const documentName = "the shared configuration"
/** Deadline of a change in milliseconds. A later write is rejected, because its caller has already got an error. */
const patience = 5_000

const openDocument = (store: StoreShape, sealed: string) => {
  const text = store.secrets.open(place, sealed)
  return text === undefined
    ? Effect.fail(
      new StoreInvalid({
        message: "the shared configuration was last encrypted with another store key: set GATEWAY_STORE_KEY_PREVIOUS " +
          "to that key (derived, if it is derived from the admin key)"
      })
    )
    : Effect.succeed(text)
}

/** Milliseconds between two looks at the facts of the document. */
const watchPause = 10_000

const notGenuine =
  "the configuration in the store is older than its revision says: write the right one with store restore FILE --force"

interface Revision {
  readonly revision: number
  readonly text: string
}

/** Applies a change to the document, as `ConfigStore.update` does. */
export type Update<E> = (
  f: (raw: RawConfig) => Effect.Effect<RawConfig, ConfigConflict | ConfigInvalid>
) => Effect.Effect<unknown, E>

/** The document of the store; `None` if it has none. */
export const readShared = Effect.fnUntraced(function*(
  store: StoreShape
): Effect.fn.Return<Option.Option<Kept>, StoreInvalid | StoreUnavailable> {
  const { revision, sealed } = yield* readDocument(store)
  if (sealed === "") return Option.none()
  const at = Math.floor(Date.now() + store.clockOffset())
  return Option.some({ revision, epoch: store.epoch(), at, text: yield* openDocument(store, sealed) })
})

/** This node's view of the shared configuration. */
export interface Shared {
  /** The configuration at the start of the node. */
  readonly initial: DecodedConfig
  readonly backing: Backing
  /** The secret that signs admin JWTs. */
  readonly jwtSecret: Redacted.Redacted<Uint8Array>
  /** The revision in effect on this node. */
  readonly revision: () => number
  /** The revision in the store. */
  readonly newestRevision: Effect.Effect<number, StoreUnavailable>
  /** False while the current document is invalid for this node. */
  readonly isCurrent: () => boolean
  /** Merges the kept document into the shared one, if it is newer than the first document of the store's data. */
  readonly mergeKept: <E extends { readonly message: string }>(update: Update<E>) => Effect.Effect<void>
  /** Path of the kept document; `undefined` if it is not saved. */
  readonly keptIn: () => string | undefined
}

/**
 * Loads the shared configuration. An empty store is initialized from the kept document (`kept`), else from this node's own
 * configuration (`loaded`). Fails for a document that is not what its revision says, unless `loaded` replaces the document.
 */
export const loadShared = Effect.fnUntraced(function*(
  store: StoreShape,
  loaded: Loaded,
  kept: KeptDocument | undefined,
  replaces?: boolean
): Effect.fn.Return<Shared, ConfigInvalid | StoreInvalid | StoreUnavailable, Scope.Scope> {
  let revision = 0
  const noRevision = -1
  /** The last revision that was invalid for this node. */
  let refused = noRevision
  let seen = 0
  let last: Snapshot = loaded.snapshot
  /**
   * Set while the kept document is merged. It becomes the origin of the store's data, and the revision rises above its
   * own.
   */
  let merging: Revision | undefined
  const signals = yield* Queue.sliding<void>(1)

  const provenDocument = ({ revision, text }: Revision) => {
    const sealed = store.secrets.seal(place, text)
    return { revision, document: sealed, proof: proveDocument(store.secrets, revision, sealed) }
  }

  const write = Effect.fnUntraced(function*(
    next: Snapshot,
    before: Snapshot | undefined,
    expected: string,
    own: number,
    origin = merging,
    isFirst = before === undefined
  ): Effect.fn.Return<string, StoreUnavailable> {
    const text = yield* stringifyConfig(withoutStore(next.raw), "compact")
    const deadline = Date.now() + store.clockOffset() + patience
    const document = provenDocument({ revision: own, text })
    const [outcome = ""] = yield* store.run(
      "configure",
      JSON.stringify({
        expected,
        deadline: Math.floor(deadline),
        ...document,
        // The first document of an empty store is also its origin.
        origin: isFirst ? document : origin && provenDocument(origin),
        ...sharedPools(store, next.config, before?.config)
      })
    )
    if (outcome === "ok") {
      revision = own
      last = next
      store.membership.setRevision(own)
      if (kept !== undefined) yield* kept.keep(own, text)
    }
    return outcome
  })

  const found = kept === undefined ? undefined : yield* Effect.result(kept.read)
  const own = found?._tag === "Success" ? Option.getOrUndefined(found.success) : undefined
  const ours = withoutStore(loaded.snapshot.raw)
  /** The kept document to merge, and its merge base. */
  let later: { readonly kept: Revision; readonly origin: string } | undefined
  let initial: DecodedConfig = loaded
  for (;;) {
    const there = yield* readDocument(store)
    const text = there.sealed === "" ? "" : yield* openDocument(store, there.sealed)
    if (!isGenuine(there)) {
      if (replaces !== true) {
        if (!there.hasOthers) return yield* new StoreInvalid({ message: notGenuine })
        // Nodes that run know the right document, and write it.
        yield* store.run("tell", "*", "config 0")
        return yield* new StoreUnavailable({ message: notGenuine })
      }
      yield* write(loaded.snapshot, undefined, there.counted, revisionAfter(there.revision, Number(there.counted)))
      continue
    }
    const isOlder = own !== undefined && own.epoch === store.epoch() && own.revision > there.revision
    if (there.revision > 0 && !isOlder) {
      const raw = yield* parseConfig(documentName, text)
      initial = yield* decodeConfig(raw, { source: documentName, duplicates: "keep-first" })
      revision = there.revision
      last = initial.snapshot
      store.membership.setRevision(revision)
      const first = there.origin.isProven ? there.origin : there
      const origin = { revision: first.revision, text: store.secrets.open(place, first.sealed) ?? text }
      const isOfOther = own !== undefined && own.epoch !== store.epoch()
      // Data that is older than the kept document belongs to another store.
      const isForeign = isOfOther && !(Number(yield* store.send("HGET", "gw:{main}:lim", "since")) > own.at)
      if (isOfOther && !isForeign && own.revision > origin.revision) {
        later = { kept: own, origin: origin.text }
        break
      }
      if (kept !== undefined && (isForeign || found?._tag === "Failure")) {
        const why = found?._tag === "Failure" ? found.failure.message : `${kept.path} is of another store`
        yield* Effect.logWarning(`The shared configuration is in effect; a file is renamed: ${why}`)
        yield* kept.setAside
      }
      // Encrypts with the current key, so that the previous key can be retired.
      if (store.secrets.isOld(place, there.sealed) || store.secrets.isOld(place, there.origin.sealed)) {
        yield* write(initial.snapshot, initial.snapshot, String(revision), revision + 1, origin)
      }
      if (kept !== undefined) yield* kept.keep(revision, text)
      break
    }
    if (found?._tag === "Failure") {
      return yield* new StoreInvalid({ message: `the store is empty, and ${found.failure.message}` })
    }
    if (own === undefined) {
      const { config } = loaded.snapshot
      if ((yield* write({ raw: ours, config }, undefined, "0", 1)) !== "ok") continue
      if (config.keys.length === 0) yield* Effect.logInfo("No gateway key is configured: add one to let callers in")
      break
    }
    const source = kept?.path ?? documentName
    initial = yield* decodeConfig(yield* parseConfig(source, own.text), { source, duplicates: "keep-first" })
    if ((yield* write(initial.snapshot, undefined, String(there.revision), own.revision)) !== "ok") continue
    yield* Effect.logInfo(`The configuration of the store is restored from ${source}`).pipe(
      Effect.annotateLogs({ revision })
    )
    break
  }

  /** Looks again at a document that has another revision than this node. */
  const watch = Effect.gen(function*() {
    const facts = yield* readDocument(store, "facts")
    if (facts.revision !== revision || facts.counted !== String(revision)) Queue.offerUnsafe(signals, undefined)
  })
  yield* Effect.ignore(watch)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(watchPause), Effect.ignore(watch))))

  store.listen((event) => {
    if (event._tag !== "config" || event.revision === revision || event.revision === refused) return
    Queue.offerUnsafe(signals, undefined)
  })

  const superseded: Superseded = { _tag: "Superseded" }
  const jwtSecret = Buffer.from(Redacted.value(yield* makeJwtSecret)).toString("base64url")
  const agreedSecret = (yield* store.secrets.agree("jwt", jwtSecret)) ?? jwtSecret

  /** Restores the configuration to a store that has lost it (revision 0) or has an older one. The highest revision wins. */
  const bringBack = Effect.fnUntraced(function*(there: number) {
    yield* store.secrets.agree("jwt", agreedSecret)
    yield* write(last, undefined, "", revision, undefined, there === 0)
  })

  /** Writes this node's document in the place of one that is not genuine. */
  const refuse = Effect.fnUntraced(function*(there: StoredDocument) {
    yield* Effect.logError(
      "The configuration in the store is refused: it is older than its revision says. The configuration of this node replaces it"
    ).pipe(Effect.annotateLogs({ revision: there.revision, own: revision }))
    const next = revisionAfter(there.revision, Number(there.counted), revision)
    yield* write(last, undefined, there.counted, next, undefined, false)
  })

  store.membership.bringsBack(() =>
    Effect.flatMap(readDocument(store), (there) => there.revision < revision ? bringBack(there.revision) : Effect.void)
  )

  const backing: Backing = {
    place: documentName,
    edited: Effect.gen(function*() {
      const there = yield* readDocument(store)
      const text = there.sealed === "" ? "" : store.secrets.open(place, there.sealed)
      if (text === undefined && !(there.revision <= revision)) {
        // Another key may have encrypted a newer document.
        return yield* new StoreUnavailable({ message: "The shared configuration cannot be decrypted" })
      }
      if (!isGenuine(there)) yield* refuse(there)
      else if (there.revision < revision) yield* bringBack(there.revision)
      if (text === undefined || there.revision <= revision || !isGenuine(there)) return Option.none()
      seen = there.revision
      return Option.some({ text, digest: String(there.revision), stamp: "" })
    }),
    adopted: (edit, next) => {
      revision = Number(edit.digest)
      last = next
      refused = noRevision
      store.membership.setRevision(revision)
      kept?.keepSoon(revision, edit.text)
    },
    refused: () => {
      refused = seen
    },
    save: Effect.fnUntraced(function*(next, before) {
      const outcome = yield* write(next, before, String(revision), Math.max(revision, merging?.revision ?? 0) + 1)
      if (outcome === "conflict") return yield* Effect.fail(superseded)
      if (outcome !== "ok") return yield* new StoreUnavailable({ message: "The store did not answer in time" })
    }),
    writable: Effect.suspend(() => kept?.isKept() === true ? Effect.succeed(true) : isPersistent(store)),
    edits: Stream.fromQueue(signals)
  }

  return {
    initial,
    backing,
    jwtSecret: Redacted.make<Uint8Array>(Buffer.from(agreedSecret, "base64url")),
    revision: () => revision,
    newestRevision: Effect.map(store.send("HGET", place, "revision"), (reply) => {
      const newest = Number(reply ?? 0)
      // The document is newer than this node's, or has not the revision that was saved last.
      if (newest !== revision) Queue.offerUnsafe(signals, undefined)
      return newest
    }),
    isCurrent: () => refused === noRevision,
    keptIn: () => kept?.isKept() === true ? kept.path : undefined,
    mergeKept: Effect.fnUntraced(function*(update) {
      if (kept === undefined || later === undefined) return
      const { kept: newer, origin } = later
      const merge = Effect.gen(function*() {
        const [base, ours] = [yield* parseConfig(documentName, origin), yield* parseConfig(kept.path, newer.text)]
        merging = newer
        yield* update((raw) => mergeConfigs(base, ours, raw))
        yield* Effect.logInfo(`Newer changes of ${kept.path} are merged into the shared configuration`).pipe(
          Effect.annotateLogs({ kept: newer.revision, revision })
        )
      })
      yield* Effect.catch(merge, (error) =>
        Effect.gen(function*() {
          yield* Effect.logWarning(`${kept.path} is newer but cannot be merged, and is renamed: ${error.message}`)
          yield* kept.setAside
          yield* kept.keep(revision, yield* stringifyConfig(withoutStore(last.raw), "compact"))
        }))
      merging = undefined
    })
  }
})

/** Minimum pause between two reads of the newest revision, in milliseconds. */
export const askingPause = 100

export class SharedRevision extends Context.Service<SharedRevision, {
  /** Waits until a revision of the shared document, or a later one, is in effect, if possible. */
  readonly reach: (revision: number) => Effect.Effect<void>
  /**
   * Waits until this node has the newest shared configuration as of the call. Fails if that cannot be determined.
   * `undefined` without a cluster.
   */
  readonly newest: Effect.Effect<void, StoreUnavailable> | undefined
  /** The shared document: its revision on this node and the file that keeps it. `undefined` without a cluster. */
  readonly shared: Pick<Shared, "revision" | "keptIn"> | undefined
  /** False while the shared document is invalid for this node. */
  readonly isCurrent: () => boolean
}>()("model-gateway/config/SharedRevision") {}

/** A process without a cluster has its configuration to itself. */
const notShared: SharedRevision["Service"] = {
  reach: () => Effect.void,
  newest: undefined,
  shared: undefined,
  isCurrent: () => true
}

/** `takeEdit` applies the newest document of the store. */
export const makeSharedRevision = Effect.fnUntraced(function*(
  shared: Pick<Shared, "revision" | "isCurrent" | "newestRevision" | "keptIn"> | undefined,
  takeEdit: Effect.Effect<void>
): Effect.fn.Return<SharedRevision["Service"], never, Scope.Scope> {
  if (shared === undefined) return notShared
  const reach = (revision: number) => Effect.suspend(() => shared.revision() >= revision ? Effect.void : takeEdit)
  const newest = yield* shareRuns(
    Effect.gen(function*() {
      const revision = yield* shared.newestRevision
      yield* reach(revision)
      if (shared.revision() < revision) {
        return yield* new StoreUnavailable({ message: "The newest configuration is invalid for this node" })
      }
    }),
    askingPause
  )
  return { reach, newest, shared, isCurrent: shared.isCurrent }
})
