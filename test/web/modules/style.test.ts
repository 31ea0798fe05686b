/**
 * The scales of the console's style: no rule has a distance, a size of text, a corner or a shadow of its own.
 */
import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { gzipSync } from "node:zlib"

const web = path.join(import.meta.dirname, "../../../src/web")
const style = readFileSync(path.join(web, "style.css"), "utf8").replace(/\/\*.*?\*\//gs, "")

/** Declarations of rules: those of custom properties define the scales. */
const declarations = [...style.matchAll(/(?<=[{;])\s*([a-z][a-z-]*):\s*([^;{}]+)(?=[;}])/g)].map(([, name, value]) => ({
  name: name!,
  value: value!.trim()
}))

const own = (property: RegExp, allowed: RegExp): ReadonlyArray<string> =>
  declarations.filter(({ name, value }) => property.test(name) && !allowed.test(value))
    .map(({ name, value }) => `${name}: ${value}`)

const length = String
  .raw`(-?0|1px|auto|100%|var\(--(half|s[1-7])\)|calc\(-1 \* var\(--(half|s[1-7])\)\)|clamp\(var\(--s\d\), [\d.]+vw, var\(--s\d\)\)|inherit)`

describe("the console's style", () => {
  it("distances are of the scale", () => {
    assert.deepStrictEqual(
      own(/^((row-|column-)?gap|(padding|margin)(-[a-z-]+)?)$/, new RegExp(`^${length}( ${length})*$`)),
      []
    )
  })

  it("text, corners and shadows are of their scales", () => {
    assert.deepStrictEqual(own(/^font-size$/, /^var\(--(tick|label|section|page|figure)\)$/), [])
    const corner = String.raw`(0|var\(--(r-cell|r-control|r-card|round)\))`
    assert.deepStrictEqual(own(/^border(-[a-z]+)*-radius$/, new RegExp(`^${corner}( ${corner})*$`)), [])
    assert.deepStrictEqual(own(/^box-shadow$/, /^(none|var\(--(lift|float|modal)\)|inset .*)$/), [])
    assert.deepStrictEqual(own(/^animation$/, /var\(--motion\)|^waits /), [])
  })

  it("pages have no distances, sizes of text, corners or shadows of their own", () => {
    const files = readdirSync(web, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".tsx"))
    const found = files.filter((name) => !name.startsWith("parts/")).flatMap((name) =>
      [
        ...readFileSync(path.join(web, name), "utf8").matchAll(
          /style=\{\{[^}]*\b(padding|margin|gap|fontSize|borderRadius|boxShadow)/g
        )
      ]
        .map(([text]) => `${name}: ${text}`)
    )
    assert.deepStrictEqual(found, [])
  })

  it("what is stale keeps its borders", () => {
    assert.notMatch(style, /\.stale[^{]*\{[^}]*border/)
  })

  it("stays below 12,000 bytes", () => {
    assert.isBelow(gzipSync(style, { level: 9 }).length, 12_000)
  })
})
