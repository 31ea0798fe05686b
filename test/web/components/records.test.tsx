/** @jsxImportSource preact */
/**
 * Components of pages, each by itself in Chromium: the course of a request, the fields of the settings form.
 */
import { useState } from "preact/hooks"
import { assert, describe, expect, it } from "vitest"
import { page, userEvent } from "vitest/browser"
import type { Setting } from "../../../src/web/forms/fields.ts"
import { Bill } from "../../../src/web/pages/requests/Bill.tsx"
import { Frames, type Wanted } from "../../../src/web/pages/requests/Frames.tsx"
import { readSides } from "../../../src/web/pages/requests/sides.ts"
import { TimeLine } from "../../../src/web/pages/requests/TimeLine.tsx"
import { FieldView } from "../../../src/web/pages/settings/FieldView.tsx"
import type { RequestRecord } from "../../../src/web/state/requests.ts"
import { draw } from "./support.tsx"

const chunk = (i: number): string => `data: {"choices":[{"delta":{"content":" ${i}"}}]}\n\n`

/** A record with `frames` frames on each side, the client's half a millisecond after the upstream's. */
const recordOf = (frames: number): RequestRecord => ({
  id: "1",
  request_id: "req_1",
  started_at: 0,
  style: "chat",
  model: "upstream-chat",
  native_model: "upstream-chat",
  stream: true,
  key: "direct",
  key_name: null,
  account: "ada@example.com",
  state: "done",
  outcome: "ok",
  status: 200,
  error: null,
  finish: "stop",
  attempts: 1,
  failovers: 0,
  calls: 0,
  queued_ms: 0,
  first_event_ms: 1,
  duration_ms: frames,
  usage: null,
  cost: null,
  bodies_kept: true,
  request: { method: "POST", path: "/v1/chat/completions", headers: {}, body: "{}", truncated: false },
  conversation: null,
  upstream: [{
    capture_id: "",
    label: "completion",
    protocol: "openai",
    attempt: 1,
    url: "",
    account: "ada@example.com",
    status: 200,
    request_body: "{}",
    frames: Array.from({ length: frames }, (_, i) => ({ at_ms: i, data: chunk(i) })),
    truncated: false
  }],
  reply: {
    status: 200,
    headers: {},
    frames: Array.from({ length: frames }, (_, i) => ({ at_ms: i + 0.5, data: chunk(i) })),
    truncated: false,
    text: "",
    reasoning: null,
    calls: [],
    finish: null
  },
  upstream_reply: null,
  bill: null,
  fallback: null,
  excluded: [],
  tries: [{
    upstream: "default",
    model: "upstream-chat",
    account: "ada@example.com",
    cause: null,
    status: null,
    queued_ms: 0,
    began_ms: 0,
    took_ms: 1,
    cost: null
  }],
  error_message: null,
  fault: null,
  tool_calls: [],
  server_timing: null,
  ignored: [],
  ignored_more: 0
})

/** The time line and the frames, to which it leads. */
const Course = ({ record }: { readonly record: RequestRecord }) => {
  const [wanted, setWanted] = useState<Wanted>()
  const sides = readSides(record)
  return (
    <>
      <TimeLine
        record={record}
        sides={sides}
        now={0}
        onTime={(at) => setWanted({ at, count: (wanted?.count ?? 0) + 1 })}
      />
      <Frames record={record} sides={sides} wanted={wanted} />
    </>
  )
}

describe("the bill of a request in the console", () => {
  const bill = {
    cost: "0.0315",
    source: "server",
    by_prices: "0.03",
    listed: null,
    by_server: "0.0315",
    lines: [
      { unit: "cached_input", amount: 10_000, price: "input", cost: "0.03" },
      { unit: "per_tool_call.maps", amount: 2, price: null, cost: "0" }
    ],
    unpriced: [{ unit: "per_tool_call.maps", amount: 2 }]
  } as const

  it("has each unit with the price that was used, and both figures", async () => {
    draw(<Bill record={{ ...recordOf(1), bill }} />)
    const text = "The server charges 0.0315. By the prices it would be 0.03. Without a price: per_tool_call.maps."
    await expect.element(page.getByText(text)).toBeVisible()
    const rows = [...page.getByRole("table", { name: "Bill" }).element().querySelectorAll("tbody tr")]
    assert.deepStrictEqual(rows.map((row) => [...row.children].map((cell) => cell.textContent)), [
      ["cached_input", "input", "10,000", "0.03"],
      ["per_tool_call.maps", "–", "2", "0"]
    ])
  })

  it("is absent for a request without a cost", () => {
    assert.strictEqual(draw(<Bill record={recordOf(1)} />).textContent, "")
  })
})

describe("the course of a request in the console", () => {
  const frames = (side: "Upstream" | "Client") => page.getByRole("table", { name: `${side} frames` })
  const rows = (side: "Upstream" | "Client") => [...frames(side).element().querySelectorAll("tbody tr")]

  it("names its colours, shows a wait that is short, says how each try ended, and has its gaps as buttons", async () => {
    const record = recordOf(1)
    const first = {
      ...record.tries[0]!,
      account: "the.nightly.evaluation@lab.example.com",
      queued_ms: 3,
      began_ms: 3,
      took_ms: 500,
      cause: "rate_limited",
      status: 429
    }
    const tries = [first, { ...record.tries[0]!, queued_ms: 2, began_ms: 4_000, took_ms: 1_000 }]
    const drawn = draw(<Course record={{ ...record, duration_ms: 10_000, tries }} />)
    const names = [...drawn.querySelectorAll(".of-span")].map(({ textContent }) => textContent)
    assert.deepStrictEqual(names, ["Queue", "Waiting for the first event", "Stream", "Failed", "Frames"])
    const lanes = [...drawn.querySelectorAll(".lane")].slice(0, 2)
    assert.deepStrictEqual(lanes.map((lane) => lane.querySelector(".badge")?.textContent), [
      "Rate limited 429",
      "Answered"
    ])
    for (const lane of lanes) {
      const boxes = [...lane.querySelectorAll(".span")].map((span) => span.getBoundingClientRect())
      assert.isAtLeast(boxes[0]!.width, 4.9)
      // None is covered by the next one.
      boxes.slice(1).forEach((box, index) => assert.isAtLeast(box.left, boxes[index]!.right - 0.1))
    }
    const link = page.getByRole("link", { name: "the.nightly.evaluation@lab.example.com" })
    await expect.element(link).toHaveAttribute("href", "#/accounts/the.nightly.evaluation%40lab.example.com")
    const gap = page.getByRole("list", { name: "Gaps" }).getByRole("button")
    await expect.element(gap).toHaveTextContent("Between two attempts for 3.50 s, from 503 ms")
    await gap.click()
    await expect.element(frames("Upstream").getByRole("button", { name: `" 0"` })).toHaveFocus()
  })

  it("keeps the size of the document independent of the number of frames", async () => {
    const place = draw(<Course record={recordOf(5_000)} />)
    await expect.element(page.getByText("1–100 of 5000").first()).toBeVisible()
    const elements = place.querySelectorAll("*").length
    assert.isAtMost(elements, 1_600)
    assert.deepStrictEqual([rows("Upstream").length, rows("Client").length], [100, 100])

    draw(<Course record={recordOf(10_000)} />)
    await expect.element(page.getByText("1–100 of 10000").first()).toBeVisible()
    assert.isAtMost(Math.abs(place.querySelectorAll("*").length - elements), 10)
  })

  it("shows what a frame adds, and the frame itself on demand", async () => {
    draw(<Course record={recordOf(3)} />)
    assert.deepStrictEqual(rows("Upstream").map((row) => row.textContent), [`0 ms" 0"`, `1 ms" 1"`, `2 ms" 2"`])
    const fold = frames("Upstream").getByRole("button", { name: `" 1"` })
    await fold.click()
    await expect.element(fold).toHaveAttribute("aria-expanded", "true")
    await expect.element(frames("Upstream").getByRole("group", { name: "Frame" })).toHaveTextContent(
      `{ "choices": [ { "delta": { "content": " 1" } } ] }`
    )
    assert.strictEqual(frames("Client").getByRole("group").elements().length, 0)
  })

  it("leads from a time to the frames of both sides, by keyboard too", async () => {
    draw(<Course record={recordOf(600)} />)
    await page.getByRole("button", { name: /^Attempt 1: Stream, ada@example.com: Answered/ }).click()
    await expect.element(frames("Upstream").getByRole("button", { name: `" 1"`, exact: true })).toHaveFocus()
    const bins = page.getByRole("group", { name: "To the client: frames over time" })
    const first = bins.getByRole("button", { name: "0 ms to 10 ms: 10 frames" })
    first.element().focus()
    await userEvent.keyboard("{End}")
    await expect.element(bins.getByRole("button", { name: "590 ms to 600 ms: 10 frames" })).toHaveFocus()
    await userEvent.keyboard("{Enter}")
    await expect.element(frames("Upstream").getByRole("button", { name: `" 590"` })).toHaveFocus()
    await expect.element(frames("Client").getByText(`" 590"`)).toBeVisible()
    // One stop of the tab key for all bins of a side.
    assert.strictEqual(bins.element().querySelectorAll("[tabindex='0']").length, 1)
  })

  it("follows the last frames while the request runs, and leads to the last one", async () => {
    draw(<Course record={{ ...recordOf(250), outcome: "open", state: "streaming" }} />)
    await expect.element(frames("Client").getByText(`" 249"`)).toBeVisible()
    const [next, last] = ["Next page", "Last"].map((name) => page.getByRole("button", { name }).last())
    await page.getByRole("button", { name: "Previous page" }).last().click()
    await expect.element(frames("Client").getByText(`" 100"`)).toBeVisible()
    draw(<Course record={{ ...recordOf(260), outcome: "open", state: "streaming" }} />)
    await expect.element(page.getByText("101–200 of 260")).toBeVisible()
    await expect.element(frames("Upstream").getByText(`" 259"`)).toBeVisible()
    await last!.click()
    await expect.element(frames("Client").getByText(`" 259"`)).toBeVisible()
    await expect.element(next!).toBeDisabled()
  })

  it("has one row with a notice on each side if the record has no frames", () => {
    draw(<Course record={{ ...recordOf(0), upstream: [], reply: null }} />)
    assert.deepStrictEqual([rows("Upstream").length, rows("Client").length], [1, 1])
    assert.strictEqual(document.querySelectorAll(".bins, .pager").length, 0)
  })
})

const field: Setting = {
  path: "runtime.account_max_inflight",
  type: "integer",
  minimum: 1,
  maximum: 256,
  choices: null,
  default: 2,
  configured: null,
  effective: 2,
  writable: true,
  description: "Requests at once of one account."
}

describe("FieldView of a setting in the console", () => {
  /** Refuses everything but numbers, like the gateway on saving. */
  const Form = ({ of }: { readonly of: Setting }) => {
    const [text, setText] = useState("")
    const fault = text === "" || /^\d+$/.test(text) ? undefined : "must be an integer"
    return <FieldView field={of} text={text} changed={text !== ""} fault={fault} onText={setText} />
  }

  it("has its description, range and path, and the refusal, as its description", async () => {
    draw(<Form of={field} />)
    const input = page.getByRole("textbox", { name: /^Requests per account/ })
    await expect.element(input).toHaveAttribute("aria-invalid", "false")
    await expect.element(input).toHaveAccessibleDescription(
      /^Requests at once of one account\..*1 to 256 · runtime\.account_max_inflight$/
    )
    await input.fill("many")
    await expect.element(input).toHaveAttribute("aria-invalid", "true")
    await expect.element(input).toHaveAccessibleDescription(/^must be an integer Requests at once/)
    // In words, not by colour.
    await expect.element(page.getByText("(changed)")).toBeVisible()
    await input.fill("3")
    await expect.element(input).toHaveAttribute("aria-invalid", "false")
    await expect.element(input).toHaveAccessibleDescription(/^Requests at once/)
  })

  it("shows a boolean as a choice, and a map as lines", async () => {
    draw(<Form of={{ ...field, path: "captures.enabled", type: "boolean", default: true, effective: true }} />)
    const choice = page.getByRole("combobox", { name: "Capture upstream traffic" })
    assert.deepStrictEqual(
      [...choice.element().querySelectorAll("option")].map((option) => option.textContent),
      ["yes (default)", "yes", "no"]
    )
    draw(<Form of={{ ...field, path: "model_aliases", type: "map", default: null, effective: { a: "b", c: "d" } }} />)
    const lines = page.getByRole("textbox", { name: "Aliases" })
    assert.strictEqual(lines.element().tagName, "TEXTAREA")
    await expect.element(lines).toHaveAccessibleDescription(/In effect: a = b, c = d/)
  })
})
