/** @jsxImportSource preact */
/**
 * The histogram above the list of requests, in Chromium.
 */
import { assert, describe, it } from "vitest"
import { page, userEvent } from "vitest/browser"
import { Histogram, rangeOf } from "../../../src/web/pages/requests/Histogram.tsx"
import { rateOf } from "../../../src/web/pages/requests/rate.ts"
import { Middle } from "../../../src/web/parts/Name.tsx"
import { chooseZone } from "../../../src/web/state/preferences.ts"
import { draw } from "./support.tsx"

chooseZone("utc")

const minute = 60_000
const start = Date.UTC(2020, 0, 1, 12)
const bucket = (index: number, ok: number, failed = 0) => ({
  at: start + index * minute,
  ok,
  failed,
  cancelled: 0,
  open: 0,
  p95_ms: ok === 0 ? null : 1_430
})
const histogram = {
  kept_from: start,
  bucket_ms: minute,
  buckets: [bucket(0, 8), bucket(1, 0), bucket(2, 2, 2), bucket(3, 1)],
  complete: true
}

describe("the histogram of requests", () => {
  it("has a bar for each time with its parts, and says all in words", () => {
    const drawn = draw(<Histogram of={histogram} busy={false} isNow={false} onRange={() => undefined} />)
    assert.strictEqual(
      page.getByRole("group").element().getAttribute("aria-label"),
      "13 requests from 1 Jan 12:00:00 to 1 Jan 12:04:00, 2 of them failed, at most 8 in one bar, p95 up to 1.43 s"
    )
    const bars = [...drawn.querySelectorAll("g")]
    const heights = bars.map((bar) =>
      [...bar.querySelectorAll("rect")].map((
        rect
      ) => [rect.getAttribute("class"), rect.getAttribute("height")])
    )
    const titles = [...drawn.querySelectorAll<HTMLElement>(".bins > span")].map(({ title }) => title)
    assert.deepStrictEqual(heights, [[["ok", "48"]], [], [["failed", "12"], ["ok", "12"]], [["ok", "6"]]])
    assert.strictEqual(
      titles[2],
      "1 Jan 12:02:00 – 1 Jan 12:03:00\n4 requests, 2 failed\np95 1.43 s\nDrag over the bars to choose a range."
    )
    assert.notInclude(titles[1], "p95")
  })

  it("has a scale: the highest count, p95 as dots below its highest, and times between both ends", () => {
    const slow = (at: number, p95_ms: number | null) => ({ ...bucket(at, 8), p95_ms })
    const buckets = [slow(0, 4_000), slow(1, null), slow(2, 2_000), bucket(3, 1_200, 34)]
    const drawn = draw(
      <Histogram of={{ ...histogram, buckets }} busy={false} isNow={false} onRange={() => undefined} />
    )
    const texts = (place: string) =>
      [...drawn.querySelectorAll(`${place} > span`)].map(({ textContent }) => textContent)
    assert.deepStrictEqual(texts(".levels-of:not(.of-p95)"), ["1,234", "0"])
    assert.deepStrictEqual(texts(".of-p95"), ["4.00 s", "p95"])
    assert.deepStrictEqual(texts(".times"), ["1 Jan 12:00:00", "12:01:00", "12:02:00", "12:03:00", "12:04:00"])
    // A dot at the top, none where nothing is known, one in the middle.
    const dots = /^M0\.5,3h0M2\.5,24h0M3\.5,/
    assert.match(drawn.querySelector(".p95")?.getAttribute("d") ?? "", dots)
    draw(<Histogram of={{ ...histogram, buckets }} busy={false} isNow onRange={() => undefined} />)
    assert.strictEqual(texts(".times").at(-1), "now")
    draw(
      <Histogram
        of={{ ...histogram, buckets: buckets.map((each) => ({ ...each, p95_ms: null })) }}
        busy={false}
        isNow={false}
        onRange={() => undefined}
      />
    )
    assert.deepStrictEqual(texts(".of-p95"), [])
  })

  it("a drag chooses the times of the bars that it touches, and a click nothing", async () => {
    const chosen: Array<readonly [number, number]> = []
    draw(<Histogram of={histogram} busy={false} isNow={false} onRange={(from, to) => chosen.push([from, to])} />)
    const strip = page.getByRole("group")
    await userEvent.click(strip)
    assert.deepStrictEqual(chosen, [])
    const { left, top, width } = strip.element().getBoundingClientRect()
    const at = (share: number) => ({ clientX: left + share * width, clientY: top + 10, pointerId: 1, bubbles: true })
    // Only a real pointer can be captured.
    strip.element().setPointerCapture = () => undefined
    for (const [name, share] of [["down", 0.9], ["move", 0.5], ["up", 0.3]] as const) {
      strip.element().dispatchEvent(new PointerEvent(`pointer${name}`, at(share)))
    }
    assert.deepStrictEqual(chosen, [[start + minute, start + 4 * minute]])
  })

  it("a range is of whole bars within the histogram", () => {
    const range = (from: number, to: number) => rangeOf(histogram, from, to).map((at) => (at - start) / minute)
    assert.deepStrictEqual(range(0, 1), [0, 4])
    assert.deepStrictEqual(range(0.3, 0.3), [1, 2])
    assert.deepStrictEqual(range(-1, 0.1), [0, 1])
    assert.deepStrictEqual(range(1, 2), [4, 5])
  })
})

describe("a row of the list of requests", () => {
  it("has the rate of the reply from its first event on", () => {
    const usage = { prompt_tokens: 10, completion_tokens: 100, reasoning_tokens: 0 }
    assert.strictEqual(rateOf({ usage, first_event_ms: 500, duration_ms: 2_500 }), 50)
    assert.isUndefined(rateOf({ usage, first_event_ms: 500, duration_ms: 500 }))
    assert.isUndefined(rateOf({ usage, first_event_ms: null, duration_ms: 500 }))
    assert.isUndefined(rateOf({ usage: null, first_event_ms: 1, duration_ms: 500 }))
  })

  it("cuts a name in its middle at a word, so that its beginning and its ending stay", () => {
    const partsAt = (width: number, text: string) => {
      const drawn = draw(
        <div style={{ width: `${width}px` }}>
          <Middle text={text} />
        </div>
      )
      assert.strictEqual(drawn.textContent, text)
      const parts = [...drawn.querySelectorAll<HTMLElement>(".middle > span")]
      const edge = drawn.firstElementChild!.getBoundingClientRect().right + 1
      assert.isAtMost(parts.at(-1)!.getBoundingClientRect().right, edge)
      return parts.map((part) => ({
        text: part.textContent,
        isCut: part.scrollWidth > part.clientWidth,
        hasLetters: part.clientWidth >= 25,
        hasDots: getComputedStyle(part).textOverflow === "ellipsis"
      }))
    }
    const part = (text: string, isCut: boolean) => ({ text, isCut, hasLetters: true, hasDots: true })
    const long = "Mobile app of the largest customer (production)"
    assert.deepStrictEqual(partsAt(130, long), [
      part("Mobile app of the largest customer ", true),
      part("(production)", false)
    ])
    assert.deepStrictEqual(partsAt(400, "Data team notebooks"), [part("Data team ", false), part("notebooks", false)])
    assert.deepStrictEqual(partsAt(110, "Data team notebooks"), [part("Data team ", true), part("notebooks", false)])
    // Where there is room for neither, both are cut, and the beginning is in sight.
    assert.deepStrictEqual(partsAt(70, "claude-sonnet-4-5"), [part("claude", true), part("-sonnet-4-5", true)])
    // A name without a word in it, and one whose beginning is too short to be cut by itself.
    assert.deepStrictEqual(partsAt(150, "averyveryverylongnamewithoutaword"), [
      part("averyveryverylongname", true),
      part("withoutaword", false)
    ])
    assert.deepStrictEqual(partsAt(60, "My notebooks"), [part("My notebooks", true)])
  })
})
