/**
 * The configuration of many nodes: one sealed document in the store, replaced as a whole by whoever changes it, together with
 * the accounts and limits that follow from it.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type { StoreShape } from "../store/Store.ts"
import { StoreInvalid, StoreUnavailable } from "../store/StoreError.ts"
import { isSameAccount } from "./Account.ts"
import { type Backing, fileBacking, type Superseded } from "./Backing.ts"
import type { ConfigConflict, ConfigInvalid } from "./ConfigError.ts"
import type { ConfigFile } from "./ConfigFile.ts"
import { decodeConfig, type DecodedConfig } from "./decodeConfig.ts"
import type { GatewayConfig, Snapshot } from "./GatewayConfig.ts"
import { canonicalJson, parseConfig, type RawConfig, stringifyConfig } from "./json.ts"
import { makeJwtSecret } from "./jwtSecret.ts"
import { mergeConfigs } from "./merge.ts"
import { withoutStore } from "./ownFields.ts"
import type { Loaded } from "./sources.ts"

const place = "gw:{main}:config"
const documentName = "the shared configuration"
/** A change that has not happened by then does not, in milliseconds: who asked for it has been told so. */
const patience = 5_000

/** What stands for the one account of an upstream that needs none: the roster of a configuration without accounts. */
export const anonymousAccount = "anonymous"

/** What the shared pool goes by under a configuration, as the script `configure` takes it. */
const poolArguments = (store: StoreShape, next: GatewayConfig, before: GatewayConfig | undefined) => {
  const known = new Map(before?.accounts.map((account) => [account.identity[0]!, account]))
  const names: Array<string> = []
  const renewed: Array<string> = []
  const disabled: Array<string> = []
  for (const account of next.accounts) {
    const name = store.nameOf(account.identity[0]!)
    const was = known.get(account.identity[0]!)
    names.push(name)
    if (was !== undefined && !isSameAccount(was, account)) renewed.push(name)
    if (account.disabled) disabled.push(name)
  }
  if (names.length === 0) names.push(store.nameOf(anonymousAccount))
  const { account_max_inflight, account_max_queue, global_max_inflight } = next.runtime
  return [
    ...[account_max_inflight, global_max_inflight, account_max_queue, next.auth.direct_max_inflight].map(String),
    before !== undefined && before.upstream !== next.upstream ? "1" : "0",
    ...[renewed, names, disabled].map((list) => JSON.stringify(list))
  ]
}

/** What is in the store: its revision and the sealed document; revision 0 where there is none. */
const readDocument = Effect.fnUntraced(function*(store: StoreShape) {
  const reply = yield* store.send("HMGET", place, "revision", "document")
  const [revision, document] = Array.isArray(reply) ? reply : []
  return { revision: Number(revision ?? 0), sealed: String(document ?? "") }
})

/** The configuration that nodes share, as this node takes part in it. */
export interface Shared {
  /** What the node begins with. */
  readonly initial: DecodedConfig
  readonly backing: Backing
  /** What admin JWTs are signed with. */
  readonly jwtSecret: Redacted.Redacted<Uint8Array>
  /** The revision that is in effect here. */
  readonly revision: () => number
  /** The revision that the store has. */
  readonly newestRevision: Effect.Effect<number, StoreUnavailable>
  /** False while the document is one that this node cannot take. */
  readonly isCurrent: () => boolean
}

/** Loads the shared configuration, or puts there what this node has loaded itself. */
export const loadShared = Effect.fnUntraced(function*(
  store: StoreShape,
  loaded: Loaded
): Effect.fn.Return<Shared, ConfigInvalid | StoreInvalid | StoreUnavailable> {
  let revision = 0
  const none = -1
  /** The last revision that this node could not take. */
  let refused = none
  let seen = 0
  let last: Snapshot = loaded.snapshot
  const signals = yield* Queue.sliding<void>(1)

  const write = Effect.fnUntraced(function*(
    next: Snapshot,
    before: Snapshot | undefined,
    expected: string,
    own: number
  ): Effect.fn.Return<string, StoreUnavailable> {
    const sealed = store.seal(place, yield* stringifyConfig(withoutStore(next.raw), "compact"))
    const deadline = Date.now() + store.clockOffset() + patience
    const args = poolArguments(store, next.config, before?.config)
    const [outcome = ""] = yield* store.run(
      "configure",
      expected,
      String(own),
      sealed,
      ...args,
      String(Math.floor(deadline))
    )
    if (outcome === "ok") {
      revision = own
      last = next
      store.setRevision(own)
    }
    return outcome
  })

  const open = (sealed: string) => {
    const text = store.open(place, sealed)
    return text === undefined
      ? Effect.fail(new StoreInvalid({ message: "GATEWAY_STORE_KEY does not open the shared configuration" }))
      : Effect.succeed(text)
  }

  const ours = withoutStore(loaded.snapshot.raw)
  let initial: DecodedConfig = loaded
  for (;;) {
    const there = yield* readDocument(store)
    if (there.revision > 0) {
      const raw = yield* parseConfig(documentName, yield* open(there.sealed))
      initial = yield* decodeConfig(raw, { source: documentName, duplicates: "keep-first" })
      revision = there.revision
      last = initial.snapshot
      store.setRevision(revision)
      if (canonicalJson(raw) !== canonicalJson(ours)) {
        yield* Effect.logInfo("The shared configuration is in effect; what this node was started with differs").pipe(
          Effect.annotateLogs({ revision })
        )
      }
      // So that the previous key is not needed for ever.
      if (store.isOld(place, there.sealed)) {
        yield* write(initial.snapshot, initial.snapshot, String(revision), revision + 1)
      }
      break
    }
    const { config } = loaded.snapshot
    if ((yield* write({ raw: ours, config }, undefined, "0", 1)) === "ok") {
      if (config.keys.length === 0) yield* Effect.logInfo("No business key is configured: add one to let callers in")
      break
    }
  }

  store.listen((kind, rest) => {
    const told = Number(rest)
    if (kind === "config" && told !== revision && told !== refused) Queue.offerUnsafe(signals, undefined)
  })

  const superseded: Superseded = { _tag: "Superseded" }
  const jwtSecret = Buffer.from(Redacted.value(yield* makeJwtSecret)).toString("base64url")
  const agreedSecret = (yield* store.agree("jwt", jwtSecret)) ?? jwtSecret

  /** An empty store gets back what was in effect; the highest revision wins. */
  const bringBack = Effect.gen(function*() {
    yield* store.agree("jwt", agreedSecret)
    yield* write(last, undefined, "", revision)
  })

  const backing: Backing = {
    place: documentName,
    edited: Effect.gen(function*() {
      const there = yield* readDocument(store)
      if (there.revision < revision) yield* bringBack
      if (there.revision <= revision) return Option.none()
      seen = there.revision
      const text = store.open(place, there.sealed)
      if (text === undefined) {
        return yield* new StoreUnavailable({ message: "The shared configuration cannot be opened" })
      }
      return Option.some({ text, digest: String(there.revision), stamp: "" })
    }),
    adopted: (edit) => {
      revision = Number(edit.digest)
      refused = none
      store.setRevision(revision)
    },
    refused: () => {
      refused = seen
    },
    save: Effect.fnUntraced(function*(next, before) {
      const outcome = yield* write(next, before, String(revision), revision + 1)
      if (outcome === "conflict") return yield* Effect.fail(superseded)
      if (outcome !== "ok") return yield* new StoreUnavailable({ message: "The store did not answer in time" })
    }),
    writable: Effect.succeed(true),
    edits: Stream.fromQueue(signals)
  }

  return {
    initial,
    backing,
    jwtSecret: Redacted.make<Uint8Array>(Buffer.from(agreedSecret, "base64url")),
    revision: () => revision,
    newestRevision: Effect.map(store.send("HGET", place, "revision"), (reply) => Number(reply ?? 0)),
    isCurrent: () => refused === none
  }
})

/** Makes each edit of the file a change of the shared configuration: what differs from the file as it was read before. */
export const followFile = Effect.fnUntraced(function*<E extends { readonly message: string }>(
  file: ConfigFile,
  loaded: Loaded,
  update: (f: (raw: RawConfig) => Effect.Effect<RawConfig, ConfigConflict>) => Effect.Effect<unknown, E>
) {
  const watched = yield* fileBacking(file, loaded.version)
  let base = withoutStore(loaded.snapshot.raw)
  const merge = Effect.gen(function*() {
    const edit = yield* watched.edited
    if (Option.isNone(edit)) return
    const edited = withoutStore(yield* parseConfig(file.path, edit.value.text))
    yield* update((raw) => mergeConfigs(base, edited, raw))
    watched.adopted(edit.value)
    base = edited
    yield* Effect.logInfo(`${file.path} was edited: the change is made for all nodes`)
  })
  yield* watched.edits.pipe(
    Stream.runForEach(() =>
      Effect.catch(merge, (error) => Effect.logWarning(`The edit is not applied: ${error.message}`))
    ),
    Effect.forkScoped
  )
})
