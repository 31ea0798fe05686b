/**
 * A node's own configuration, of its file or of `GATEWAY_CONFIG_JSON`, beside the one that the nodes of a store share.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { fileBacking } from "./Backing.ts"
import { changedFields } from "./changedFields.ts"
import type { ConfigFile } from "./ConfigFile.ts"
import { isJsonObject, parseConfig, type RawConfig } from "./json.ts"
import { mergeConfigs } from "./merge.ts"
import { setField, withoutStore } from "./rawConfig.ts"
import type { Update } from "./sharedConfig.ts"
import type { Loaded } from "./sources.ts"

/** State of the gateway that stands in the configuration, and that no file replaces. */
const state: ReadonlyArray<readonly [group: string, field: string]> = [
  ["admin", "generation"],
  ["admin", "jwt_valid_after_unix"],
  ["admin", "password_check"],
  ["auth", "removed_keys"],
  ["host", "last_synced_hash"],
  ["host", "last_sync_time"]
]

/** A configuration with the state of another one. */
const withStateOf = (shared: RawConfig, own: RawConfig): RawConfig =>
  state.reduce((raw, [group, field]) => {
    const there = isJsonObject(shared[group]) ? shared[group][field] : undefined
    return setField(raw, [group, field], there)
  }, own)

/** Fields that the log names. */
const mostNamed = 10

/** Whether a node's own configuration replaces the shared one at its start (`store.config`). */
const wins = ({ snapshot }: Loaded): boolean => {
  const store = snapshot.raw["store"]
  return isJsonObject(store) && store["config"] === "file"
}

/**
 * Compares a node's own configuration with the shared one, `shared`, at the start of the node. Where it wins, `update` makes it the shared one;
 * else a warning names the fields that have no effect. A node without a configuration of its own takes the shared one.
 */
export const settleOwn = Effect.fnUntraced(function*<E>(
  loaded: Loaded,
  shared: RawConfig,
  update: (f: (raw: RawConfig) => Effect.Effect<RawConfig>) => Effect.Effect<unknown, E>
) {
  if (!loaded.envBacked && Option.isNone(loaded.version)) return
  const own = withoutStore(loaded.snapshot.raw)
  const { fields, more } = yield* changedFields(shared, withStateOf(shared, own))
  if (fields.length === 0) return
  const left = fields.length + more - Math.min(fields.length, mostNamed)
  const named = fields.slice(0, mostNamed).map(({ path }) => path).join(", ") + (left > 0 ? ` and ${left} more` : "")
  if (wins(loaded)) {
    yield* update((raw) => Effect.succeed(withStateOf(raw, own)))
    yield* Effect.logInfo(`This node's own configuration replaces the shared one, from which it differs in ${named}`)
  } else {
    yield* Effect.logWarning(
      `The shared configuration is in effect, and this node's own one is not: they differ in ${named}. Set store.config to ` +
        "file for a node whose own configuration replaces the shared one at its start, or change the shared one by the admin API"
    )
  }
})

/** Applies each edit of the file to the shared configuration: the difference from the file's previous content. */
export const followFile = Effect.fnUntraced(function*<E extends { readonly message: string }>(
  file: ConfigFile,
  loaded: Loaded,
  update: Update<E>
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
    yield* Effect.logInfo(`${file.path} was edited: the change applies to all nodes`)
  })
  yield* watched.edits.pipe(
    Stream.runForEach(() =>
      Effect.catch(merge, (error) => Effect.logWarning(`The edit is not applied: ${error.message}`))
    ),
    Effect.forkScoped
  )
})
