/**
 * Raw samples: capture a reply, find one, save it, play it again in any style.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import { playedStyles } from "../../api.ts"
import { DeleteDialog } from "../parts/Dialog.tsx"
import { bytes, dateTime } from "../parts/format.ts"
import { Heading } from "../parts/Heading.tsx"
import { Loaded } from "../parts/Loaded.tsx"
import { Select } from "../parts/Select.tsx"
import { Table } from "../parts/Table.tsx"
import { act, reload, tell } from "../state/actions.ts"
import { Admin } from "../state/client.ts"
import { failureText } from "../state/failure.ts"
import { useTexts } from "../state/preferences.ts"
import { rest } from "../state/rest.ts"

const shownReplies = 20
const shownCharacters = 200_000

const savedAtom = Admin.query("admin-samples", "list", { reactivityKeys: ["samples"] })

const Capture = () => {
  const t = useTexts().samples
  const field = useRef<HTMLInputElement>(null)
  const [busy, setBusy] = useState(false)
  const [empty, setEmpty] = useState(true)
  const capture = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    try {
      const response = await rest("POST", "/admin/dev/raw-samples/capture", {
        body: { message: field.current?.value ?? "", stream: true }
      })
      const text = await response.text()
      if (response.ok) {
        tell(t.captured(response.headers.get("x-gateway-sample-id") ?? ""))
        reload("samples", "captures")
      } else tell(text.slice(0, 500), true)
    } catch (reason) {
      tell(failureText(reason), true)
    }
    setBusy(false)
  }
  return (
    <form class="row" onSubmit={(event) => void capture(event)}>
      <label class="field grow">
        <span>{t.message}</span>
        <input
          ref={field}
          type="text"
          autocomplete="off"
          onInput={(event) => setEmpty(event.currentTarget.value.trim() === "")}
        />
      </label>
      <button type="submit" class="primary" disabled={busy || empty}>{t.capture}</button>
    </form>
  )
}

const Captured = () => {
  const t = useTexts().samples
  const [search, setSearch] = useState("")
  const [q, setQ] = useState("")
  const [saving, setSaving] = useState<string>()
  useEffect(() => {
    const timer = setTimeout(() => setQ(search.trim()), 250)
    return () => clearTimeout(timer)
  }, [search])
  const found = useMemo(
    () =>
      Admin.query("admin-samples", "query", {
        query: { limit: shownReplies, ...(q === "" ? {} : { q }) },
        reactivityKeys: ["captures"]
      }),
    [q]
  )
  const save = async (chain_key: string) => {
    setSaving(chain_key)
    await act((client) => client["admin-samples"].save({ payload: { chain_key } }), {
      done: ({ sample_id }) => t.saved(sample_id),
      subjects: ["samples"]
    })
    setSaving(undefined)
  }
  return (
    <section>
      <div class="actions between">
        <h2>{t.capturedReplies}</h2>
        <button type="button" class="quiet" onClick={() => reload("captures")}>{t.reload}</button>
      </div>
      <label class="field">
        <span>{t.search}</span>
        <input type="text" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
      </label>
      <Loaded atom={found}>
        {({ items }, waiting) => (
          <Table
            name={t.capturedReplies}
            busy={waiting}
            columns={[{ name: t.asked }, { name: t.answered }, { name: t.rounds, number: true }, {
              name: t.actions,
              hidden: true
            }]}
            rows={items.length}
            empty={q === "" ? t.noneCaptured : t.noneFound}
          >
            {items.map((item) => (
              <tr key={item.chain_key}>
                <th scope="row" class="text">{item.request_preview === "" ? "–" : item.request_preview}</th>
                <td class="text">{item.response_preview === "" ? "–" : item.response_preview}</td>
                <td class="number">{item.round_count}</td>
                <td class="tools">
                  <button
                    type="button"
                    class="quiet"
                    aria-label={t.saveOf(item.chain_key)}
                    disabled={saving !== undefined}
                    onClick={() => void save(item.chain_key)}
                  >
                    {t.save}
                  </button>
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Loaded>
    </section>
  )
}

interface Played {
  readonly id: string
  readonly text: string
  readonly failed: boolean
}

const Saved = () => {
  const texts = useTexts()
  const t = texts.samples
  const [style, setStyle] = useState<string>("chat")
  const [deleting, setDeleting] = useState<string>()
  const [played, setPlayed] = useState<Played>()
  const replay = async (id: string) => {
    try {
      const response = await rest("POST", "/admin/dev/raw-samples/replay", {
        body: { sample_id: id, style, stream: true }
      })
      const text = await response.text()
      setPlayed({ id, text: text.slice(0, shownCharacters), failed: !response.ok })
    } catch (reason) {
      tell(failureText(reason), true)
    }
  }
  return (
    <section>
      <div class="actions between">
        <h2>{t.savedSamples}</h2>
        <Select
          class="inline"
          label={t.style}
          value={style}
          options={playedStyles.map((each) => [each, texts.playground.styles[each]] as const)}
          onValue={setStyle}
        />
      </div>
      <Loaded atom={savedAtom}>
        {({ items }, waiting) => (
          <Table
            name={t.savedSamples}
            busy={waiting}
            columns={[
              { name: t.sample },
              { name: t.created },
              { name: t.model },
              { name: t.rounds, number: true },
              { name: t.size, number: true },
              { name: t.actions, hidden: true }
            ]}
            rows={items.length}
            empty={t.noneSaved}
          >
            {items.slice(0, 200).map((item) => (
              <tr key={item.sample_id}>
                <th scope="row" class="text">{item.sample_id}</th>
                <td class="nowrap">{dateTime(item.created_at)}</td>
                <td>{item.model ?? "–"}</td>
                <td class="number">{item.round_count}</td>
                <td class="number">{bytes(item.bytes)}</td>
                <td class="tools">
                  <button
                    type="button"
                    class="quiet"
                    aria-label={t.replayOf(item.sample_id)}
                    onClick={() => void replay(item.sample_id)}
                  >
                    {t.replay}
                  </button>
                  <button
                    type="button"
                    class="quiet danger"
                    aria-label={texts.common.deleteOf(item.sample_id)}
                    onClick={() => setDeleting(item.sample_id)}
                  >
                    {texts.common.delete}
                  </button>
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Loaded>
      {played === undefined ? null : (
        <section role="region" aria-label={t.replay}>
          <h2>{t.replayTitle(played.id)}</h2>
          {played.failed ? <p class="notice bad" role="alert">{t.replayFailed}</p> : null}
          <div class="body" tabIndex={0} role="group" aria-label={t.replayTitle(played.id)}>
            <pre>{played.text}</pre>
          </div>
        </section>
      )}
      {deleting === undefined ? null : (
        <DeleteDialog
          name={deleting}
          onClose={() => setDeleting(undefined)}
          onDelete={() =>
            act((client) => client["admin-samples"].remove({ params: { sample_id: deleting } }), {
              done: () => t.deleted(deleting),
              subjects: ["samples"]
            })}
        />
      )}
    </section>
  )
}

export const Samples = () => {
  const t = useTexts()
  return (
    <>
      <Heading name={t.common.pages.samples} />
      <p class="lead">{t.samples.lead}</p>
      <Capture />
      <Captured />
      <Saved />
    </>
  )
}
