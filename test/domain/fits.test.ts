/** Which targets hold a request, as properties. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Conversation, Part } from "../../src/domain/Conversation.ts"
import { exceeds, fitting, reads, smallestOf } from "../../src/domain/fits.ts"

const window = fc.option(fc.integer({ min: 1, max: 1_000 }), { nil: undefined })
const windows = fc.array(window, { minLength: 1, maxLength: 6 })
const tokens = fc.integer({ min: 0, max: 2_000 })

describe("the targets of a request", () => {
  it("are all that may hold it, in their order, with those of unknown windows; else the one with the largest window", () => {
    fc.assert(fc.property(windows, tokens, tokens, (windows, prompt, output) => {
      const places = fitting(windows, prompt, output)
      const open = windows.flatMap((each, place) => exceeds(each, prompt, output) ? [] : [place])
      if (open.length > 0) return assert.deepStrictEqual(places, open)
      assert.lengthOf(places, 1)
      assert.strictEqual(windows[places[0]!], Math.max(...windows.map((each) => each!)))
    }))
  })

  it("are left out only where the estimate is too high by more than a fifth", () => {
    assert.isFalse(exceeds(80, 100, 0))
    assert.isTrue(exceeds(79, 100, 0))
    assert.isFalse(exceeds(100, 100, 20))
    assert.isTrue(exceeds(100, 100, 21))
    assert.isFalse(exceeds(undefined, 1e9, 1e9))
  })

  it("differ by their windows only where one of them is another one", () => {
    assert.isUndefined(smallestOf([]))
    assert.isUndefined(smallestOf([undefined, undefined]))
    assert.isUndefined(smallestOf([5, 5]))
    assert.strictEqual(smallestOf([9, 5]), 5)
    assert.strictEqual(smallestOf([undefined, 9]), 9)
  })

  it("read what the conversation has, also within results, as far as their input is known", () => {
    const file = (fields: object): Part => ({ _tag: "File", kind: "file", ...fields }) as Part
    const parts: ReadonlyArray<readonly [Part, string | undefined]> = [
      [{ _tag: "Text", text: "Hi" } as Part, undefined],
      [{ _tag: "Image", url: "https://host/a.png" } as Part, "image"],
      [file({ mediaType: "application/pdf" }), "pdf"],
      [file({ name: "A.PDF" }), "pdf"],
      [file({ mediaType: "text/plain", name: "a.pdf" }), undefined],
      [file({ kind: "audio" }), "audio"],
      [file({ kind: "video" }), "video"]
    ]
    for (const [part, modality] of parts) {
      for (const placed of [part, { _tag: "Result", id: "1", content: [part] } as unknown as Part]) {
        const conversation = { turns: [{ role: "user", parts: [placed] }] } as unknown as Conversation
        assert.isTrue(reads({}, conversation))
        assert.strictEqual(reads({ input: ["text"] }, conversation), modality === undefined)
        assert.isTrue(reads({ input: ["text", "image", "pdf", "audio", "video"] }, conversation))
      }
    }
  })
})
