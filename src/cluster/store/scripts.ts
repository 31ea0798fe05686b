/**
 * The Lua scripts of the store: the shared text followed by each script's own.
 */
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"

/** Reads a file in `scripts`. The build replaces these calls with the texts. */
const text = (name: URL): string => readFileSync(name, "utf8")

const base = text(new URL("./scripts/base.lua", import.meta.url))
const state = text(new URL("./scripts/state.lua", import.meta.url))
const pool = text(new URL("./scripts/pool.lua", import.meta.url))
const windows = text(new URL("./scripts/windows.lua", import.meta.url))
const needs = text(new URL("./scripts/needs.lua", import.meta.url))
const queue = text(new URL("./scripts/queue.lua", import.meta.url))
const cooling = text(new URL("./scripts/cooling.lua", import.meta.url))
const nodes = text(new URL("./scripts/nodes.lua", import.meta.url))
const health = text(new URL("./scripts/health.lua", import.meta.url))
const budgets = text(new URL("./scripts/budgets.lua", import.meta.url))
const attached = text(new URL("./scripts/attached.lua", import.meta.url))

/** A script with its SHA-1 digest, which `EVALSHA` takes. */
export interface Script {
  readonly name: string
  readonly lua: string
  readonly sha1: string
  /** Minimum timeout in milliseconds, for scripts with large arguments. */
  readonly patience: number
}

export const makeScript = (name: string, lua: string, patience = 0): Script => ({
  name,
  lua,
  sha1: createHash("sha1").update(lua).digest("hex"),
  patience
})

/**
 * A script on top of the pool's text; tests make their own. Each run makes the functions anew. Lua walks over all captured variables of a
 * function to capture one more of them, and takes those of the enclosing one directly: so the state, which most of the functions capture, is
 * outside of the function that has them.
 */
export const poolScript = (name: string, own: string, patience?: number): Script => {
  const shared = [windows, needs, pool, queue, cooling, nodes, health, budgets]
  // A function has 200 local variables at most.
  const body = [...shared, "local function own()", own, "end", "return own()"]
  return makeScript(name, [base, state, "local function run()", ...body, "end", "return run()"].join("\n"), patience)
}

/** A script for attached nodes alone. */
const nodeScript = (name: string, own: string, patience?: number): Script =>
  poolScript(name, [attached, own].join("\n"), patience)

/** A script that does without the pool. */
const plainScript = (name: string, own: string, patience?: number): Script =>
  makeScript(name, [base, own].join("\n"), patience)

/** Timeout in milliseconds for a configuration with many accounts. */
const documentPatience = 5_000

/** Timeout in milliseconds for the usage of many keys. */
const usagePatience = 2_000

export const scripts = {
  acquire: nodeScript("acquire", text(new URL("./scripts/acquire.lua", import.meta.url))),
  attach: poolScript("attach", text(new URL("./scripts/attach.lua", import.meta.url))),
  beat: poolScript("beat", text(new URL("./scripts/beat.lua", import.meta.url))),
  cleaned: nodeScript("cleaned", text(new URL("./scripts/cleaned.lua", import.meta.url))),
  configure: nodeScript("configure", text(new URL("./scripts/configure.lua", import.meta.url)), documentPatience),
  document: plainScript("document", text(new URL("./scripts/document.lua", import.meta.url)), documentPatience),
  facts: poolScript("facts", text(new URL("./scripts/facts.lua", import.meta.url))),
  keys: nodeScript("keys", text(new URL("./scripts/keys.lua", import.meta.url))),
  late: nodeScript("late", text(new URL("./scripts/late.lua", import.meta.url))),
  leave: poolScript("leave", text(new URL("./scripts/leave.lua", import.meta.url))),
  login: nodeScript("login", text(new URL("./scripts/login.lua", import.meta.url))),
  mark: poolScript("mark", text(new URL("./scripts/mark.lua", import.meta.url))),
  places: nodeScript("places", text(new URL("./scripts/places.lua", import.meta.url))),
  release: nodeScript("release", text(new URL("./scripts/release.lua", import.meta.url))),
  respond: plainScript("respond", text(new URL("./scripts/respond.lua", import.meta.url))),
  report: nodeScript("report", text(new URL("./scripts/report.lua", import.meta.url))),
  tell: poolScript("tell", text(new URL("./scripts/tell.lua", import.meta.url))),
  status: poolScript("status", text(new URL("./scripts/status.lua", import.meta.url))),
  usage: plainScript("usage", text(new URL("./scripts/usage.lua", import.meta.url)), usagePatience)
}

export type ScriptName = keyof typeof scripts
