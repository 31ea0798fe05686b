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

/** The colours that themes choose, light and dark. */
const colours = new Map(
  [...style.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(([, name, light, dark]) =>
    [name!, [light!, dark!]] as const
  )
)

/** What eyes without working red and green cones see of linear red, green and blue (Machado, Oliveira and Fernandes, 2009). */
const [protanopia, deuteranopia] = [
  [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
]

const linearOf = (colour: string): ReadonlyArray<number> =>
  [1, 3, 5].map((at) => {
    const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return value <= 0.040_45 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })

const times = (matrix: ReadonlyArray<ReadonlyArray<number>>, vector: ReadonlyArray<number>): ReadonlyArray<number> =>
  matrix.map((row) => Math.min(1, Math.max(0, row.reduce((sum, each, index) => sum + each * vector[index]!, 0))))

/** A colour in CIE L*a*b* with the white of D65, in which distances are those that people see. */
const labOf = (linear: ReadonlyArray<number>): ReadonlyArray<number> => {
  const [x, y, z] = [
    [0.433_953, 0.376_219, 0.189_828],
    [0.212_673, 0.715_152, 0.072_175],
    [0.017_758, 0.109_477, 0.872_765]
  ].map((row) => {
    const value = row.reduce((sum, each, index) => sum + each * linear[index]!, 0)
    return value > 216 / 24_389 ? Math.cbrt(value) : (24_389 / 27 * value + 16) / 116
  }) as [number, number, number]
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)]
}

/** A colour as it looks to most eyes, in protanopia and in deuteranopia. */
const viewsOf = (colour: string): ReadonlyArray<ReadonlyArray<number>> => {
  const linear = linearOf(colour)
  return [linear, times(protanopia!, linear), times(deuteranopia!, linear)].map(labOf)
}

/** The relative luminance of WCAG. */
const luminance = (colour: string): number =>
  [0.2126, 0.7152, 0.0722].reduce((sum, weight, index) => sum + weight * linearOf(colour)[index]!, 0)

/** The pairs of a colour and a ground that have less contrast than `least` in a theme. */
const faint = (names: ReadonlyArray<string>, grounds: ReadonlyArray<string>, least: number): ReadonlyArray<string> =>
  names.flatMap((name) =>
    grounds.flatMap((ground) =>
      [0, 1].flatMap((theme) => {
        const [a, b] = [name, ground].map((each) => luminance(colours.get(each)![theme]!))
        const contrast = (Math.max(a!, b!) + 0.05) / (Math.min(a!, b!) + 0.05)
        return contrast < least ? [`${name} on ${ground}: ${contrast.toFixed(2)}`] : []
      })
    )
  )

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

  it("edges of controls have a contrast of 3 on every ground, series of a chart one of 3.8, and bars one of 3", () => {
    const grounds = ["surface", ...[...colours.keys()].filter((name) => name.endsWith("ground"))]
    assert.isAtLeast(grounds.length, 6)
    assert.deepStrictEqual(faint(["edge", "bad", "accent"], [...grounds, "sunken", "hover"], 3), [])
    const series = [...colours.keys()].filter((name) => name.startsWith("part-"))
    assert.lengthOf(series, 8)
    assert.deepStrictEqual(faint(series, ["surface"], 3.8), [])
    assert.deepStrictEqual(faint(["fill"], ["surface"], 3), [])
  })

  it("series of a chart differ for every eye: neighbours by 15, and any two by 10", () => {
    const near: Array<string> = []
    for (const theme of [0, 1]) {
      const series = Array.from({ length: 8 }, (_, index) => viewsOf(colours.get(`part-${index + 1}`)![theme]!))
      series.forEach((views, index) =>
        series.slice(index + 1).forEach((others, after) => {
          // The rest, which is the last one, stands beside any of them.
          const least = after === 0 || index + after + 1 === 7 ? 15 : 10
          views.forEach((view, eye) => {
            const apart = Math.hypot(...view.map((value, part) => value - others[eye]![part]!))
            if (apart < least) near.push(`${index + 1} and ${index + after + 2}, ${theme}, ${eye}: ${apart.toFixed(1)}`)
          })
        })
      )
    }
    assert.deepStrictEqual(near, [])
  })

  it("series of a chart are dark and light in turn", () => {
    for (const theme of [0, 1]) {
      const lights = Array.from(
        { length: 8 },
        (_, index) => labOf(linearOf(colours.get(`part-${index + 1}`)![theme]!))[0]!
      )
      const steps = lights.slice(1).map((light, index) => Math.sign(light - lights[index]!))
      assert.deepStrictEqual(steps, steps.map((_, index) => index % 2 === 0 ? steps[0]! : -steps[0]!))
    }
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

  it("stays below 12,500 bytes", () => {
    assert.isBelow(gzipSync(style, { level: 9 }).length, 12_500)
  })
})
