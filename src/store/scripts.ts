/**
 * The Lua scripts that the store runs, as whole texts: what all of them share, then each one's own.
 */
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"

/** The text of a file in `scripts`. The build puts the texts in the place of these calls. */
const text = (name: URL): string => readFileSync(name, "utf8")

const pool = text(new URL("./scripts/pool.lua", import.meta.url))
const health = text(new URL("./scripts/health.lua", import.meta.url))

/** A script and the digest that the server knows it by. */
export interface Script {
  readonly name: string
  readonly lua: string
  readonly sha1: string
}

/** Makes a script of a text. */
export const makeScript = (name: string, lua: string): Script => ({
  name,
  lua,
  sha1: createHash("sha1").update(lua).digest("hex")
})

/** A script that works on the pool; tests make their own. */
export const poolScript = (name: string, own: string): Script => makeScript(name, `${pool}\n${health}\n${own}`)

/** Every script, by name. */
export const scripts = {
  acquire: poolScript("acquire", text(new URL("./scripts/acquire.lua", import.meta.url))),
  attach: poolScript("attach", text(new URL("./scripts/attach.lua", import.meta.url))),
  beat: poolScript("beat", text(new URL("./scripts/beat.lua", import.meta.url))),
  cleaned: poolScript("cleaned", text(new URL("./scripts/cleaned.lua", import.meta.url))),
  configure: poolScript("configure", text(new URL("./scripts/configure.lua", import.meta.url))),
  late: poolScript("late", text(new URL("./scripts/late.lua", import.meta.url))),
  leave: poolScript("leave", text(new URL("./scripts/leave.lua", import.meta.url))),
  release: poolScript("release", text(new URL("./scripts/release.lua", import.meta.url))),
  report: poolScript("report", text(new URL("./scripts/report.lua", import.meta.url)))
}

export type ScriptName = keyof typeof scripts
