/**
 * The playground: sends requests to the gateway like a caller, in any style.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import * as Atom from "effect/reactivity/Atom"
import { useEffect, useRef, useState } from "preact/hooks"
import { keyPreview } from "../../domain/identity.ts"
import { useAcceptedKeys } from "../pages/configuration.tsx"
import { keyIdOf } from "../pages/keys/keys.ts"
import { Check, Failure, Select, TextArea, TextField } from "../parts/Form.tsx"
import { compact, countdown, duration, number } from "../parts/format.ts"
import { Heading } from "../parts/Heading.tsx"
import { Markdown } from "../parts/Markdown.tsx"
import { at, fetchInTime } from "../state/client.ts"
import { list, record, string } from "../state/json.ts"
import { clockAtom } from "../state/live.ts"
import { readOf } from "../state/reads.ts"
import { useAtom } from "../state/registry.ts"
import { linkTo } from "../state/route.ts"
import { useTexts } from "../state/texts.ts"
import type { AllTexts } from "../texts/later.ts"
import { styles, type Turn } from "./conversation.ts"
import { Code, RawFrames, Reasoning } from "./Output.tsx"
import { endRehearsal, rehearsalAtom, takeRehearsal } from "./rehearsal.ts"
import {
  type Conversation,
  conversationAtom,
  formAtom,
  newConversation,
  promptOf,
  sendForm,
  setForm,
  stopReply
} from "./state.ts"
import { declaredTools } from "./tools.ts"

const keysAtom = readOf("admin-keys", "list", { query: { page: 1, page_size: 200 }, reactivityKeys: ["keys"] })

/** The models that the gateway lists to a key; none without one. */
const modelsOf = Atom.family((key: string | undefined) =>
  Atom.make(
    Effect.tryPromise(async (): Promise<ReadonlyArray<string>> => {
      if (key === undefined) return []
      const headers = { authorization: `Bearer ${key}` }
      const response = await fetchInTime(at("/v1/models"), { credentials: "omit", headers })
      return list(record(await response.json())["data"]).map((model) => string(record(model)["id"]))
    })
  )
)

const TurnView = ({ turn }: { readonly turn: Turn }) => {
  const t = useTexts().playground
  if (turn.role === "tool") {
    return (
      <div class="turn tool">
        <p class="who">{t.toolResult(turn.call.name)}</p>
        <pre>{turn.result}</pre>
      </div>
    )
  }
  return (
    <div class={`turn ${turn.role}`}>
      <p class="who">{t.roles[turn.role]}</p>
      {turn.role === "user" && turn.image !== undefined && <p class="hint">{t.picture}</p>}
      {turn.text.trim() !== "" && (turn.role === "assistant"
        ? <Markdown text={turn.text} />
        : <p class="said">{turn.text.trim()}</p>)}
      {turn.role === "assistant" && turn.calls.map((call) => (
        <p key={call.id} class="call">
          <span class="hint">{t.call}</span> <code>{call.name}({call.arguments})</code>
        </p>
      ))}
    </div>
  )
}

const figureTexts = (t: AllTexts["playground"], figures: Conversation["figures"]): ReadonlyArray<string> => {
  if (figures === undefined) return []
  const { first, tokens, whole } = figures
  const speed = tokens === undefined || whole <= first ? undefined : (tokens.completion * 1000) / (whole - first)
  return [
    t.firstAfter(duration(first)),
    t.tookWhole(duration(whole)),
    ...tokens === undefined ? [] : [t.tokensOf(number(tokens.prompt), number(tokens.completion))],
    ...speed === undefined ? [] : [t.speed(compact(speed))]
  ]
}

/** The largest picture that is sent. */
const largestPicture = 8 * 1024 * 1024

const readPicture = async (file: File): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener("load", () => resolve(String(reader.result)))
    reader.addEventListener("error", () => reject(reader.error ?? new Error(file.name)))
    reader.readAsDataURL(file)
  })

/** The keys that the page can call with, by their names. */
const useKeyNames = (keys: ReadonlyArray<string>) => {
  const list = Option.getOrUndefined(AsyncResult.value(useAtom(keysAtom)))?.items ?? []
  const names = new Map(list.map(({ id, name }) => [id, name]))
  return keys.slice(0, 200).map((key) => {
    const name = names.get(keyIdOf(key))
    return name ? `${name} (${keyPreview(key)})` : keyPreview(key)
  })
}

const ConversationLog = ({ conversation }: { readonly conversation: Conversation }) => {
  const t = useTexts().playground
  const box = useRef<HTMLDivElement>(null)
  const { answer, failure, finish, note, running, turns } = conversation
  useEffect(() => {
    const element = box.current
    // Scrolls along with the reply, unless the reader has scrolled back.
    if (element !== null && element.scrollHeight - element.scrollTop - element.clientHeight < 240) {
      element.scrollTop = element.scrollHeight
    }
  }, [conversation])
  return (
    <div ref={box} class="log" role="log" aria-label={t.conversation} aria-busy={running} tabIndex={0}>
      {turns.length === 0 && !running && <p class="empty">{t.empty}</p>}
      {turns.slice(-100).map((turn, index) => <TurnView key={index} turn={turn} />)}
      {answer !== undefined && <TurnView turn={{ role: "assistant", ...answer }} />}
      {running && (answer === undefined || answer.text === "") && (
        <p class="hint waiting">{answer?.reasoning ? t.thinking : t.waiting}</p>
      )}
      <Failure text={failure} />
      {note !== undefined && <p class="notice">{t.notes[note]}</p>}
      {!running && finish !== undefined && failure === undefined && (
        <p class="hint">{[t.finished(finish), ...figureTexts(t, conversation.figures)].join(" · ")}</p>
      )}
    </div>
  )
}

/** Says that the next request is a rehearsal, and until when. */
const RehearsalNotice = () => {
  const t = useTexts().playground
  const rehearsal = useAtom(rehearsalAtom)
  const now = useAtom(clockAtom)
  if (rehearsal === undefined) return null
  const { route, until, without } = rehearsal
  return (
    <div class="notice" role="status" aria-label={t.rehearsal}>
      <p>
        {until > now
          ? t.rehearses(route, without.join(", "), countdown((until - now) / 1000))
          : t.rehearsalOver}
      </p>
      <button type="button" onClick={endRehearsal}>{t.endRehearsal}</button>
    </div>
  )
}

export const Playground = () => {
  const { common, playground: t, requests } = useTexts()
  const form = useAtom(formAtom)
  const conversation = useAtom(conversationAtom)
  const [code, setCode] = useState(false)
  const accepted = useAcceptedKeys()
  const keys = accepted ?? []
  const key = keys[form.key] ?? keys[0]
  const models = Option.getOrElse(AsyncResult.value(useAtom(modelsOf(key))), (): ReadonlyArray<string> => [])
  const keyNames = useKeyNames(keys)
  const [tooLarge, setTooLarge] = useState(false)
  const isToolsText = declaredTools(form.ownTools) !== undefined
  const isRetry = form.message.trim() === "" && conversation.failure !== undefined
  const send = (event: Event) => {
    event.preventDefault()
    if (key !== undefined) void sendForm(key, takeRehearsal(form.model))
  }
  const ready = key !== undefined && !conversation.running && form.model.trim() !== "" && isToolsText &&
    (form.message.trim() !== "" || conversation.turns.at(-1)?.role === "user")
  return (
    <>
      <Heading name={common.pages.playground}>
        <button type="button" aria-expanded={code} onClick={() => setCode(!code)}>{t.code}</button>
        <button
          type="button"
          disabled={conversation.turns.length === 0 && !conversation.running}
          onClick={newConversation}
        >
          {t.newConversation}
        </button>
      </Heading>
      {accepted?.length === 0 && (
        <p class="notice warn">
          {t.noKeys} <a href={linkTo("keys")}>{common.pages.keys}</a>
        </p>
      )}
      <RehearsalNotice />
      <div class="playground">
        <form class="card" id="playground-form" onSubmit={send}>
          <Select
            label={t.style}
            value={form.style}
            options={styles.map((style) => [style, requests.styles(style)] as const)}
            onValue={(style) => setForm({ style })}
          />
          <div class="field">
            <label for="playground-model">{t.model}</label>
            <input
              id="playground-model"
              type="text"
              list="playground-models"
              autocomplete="off"
              spellcheck={false}
              value={form.model}
              onInput={(event) => setForm({ model: event.currentTarget.value })}
            />
            <datalist id="playground-models">{models.map((model) => <option key={model} value={model} />)}</datalist>
          </div>
          <Select
            label={t.key}
            value={String(keys[form.key] === undefined ? 0 : form.key)}
            options={keyNames.map((name, index) => [String(index), name] as const)}
            onValue={(index) => setForm({ key: Number(index) })}
          />
          <TextArea
            label={t.system}
            rows={3}
            value={form.system}
            onInput={(event) => setForm({ system: event.currentTarget.value })}
          />
          <div class="stack tight">
            <Check
              label={t.stream}
              checked={form.stream}
              onChange={(event) => setForm({ stream: event.currentTarget.checked })}
            />
            <Check
              label={t.tools}
              aria-describedby="playground-tools"
              checked={form.tools}
              onChange={(event) => setForm({ tools: event.currentTarget.checked })}
            />
            <p class="hint" id="playground-tools">{t.toolsHint}</p>
            <Check
              label={t.json}
              disabled={form.style === "messages"}
              checked={form.json && form.style !== "messages"}
              onChange={(event) => setForm({ json: event.currentTarget.checked })}
            />
          </div>
          <div class="row">
            <TextField
              label={t.temperature}
              inputMode="decimal"
              placeholder={t.byModel}
              value={form.temperature}
              onInput={(event) => setForm({ temperature: event.currentTarget.value })}
            />
            <TextField
              label={t.maxTokens}
              inputMode="numeric"
              placeholder={t.byModel}
              value={form.maxTokens}
              onInput={(event) => setForm({ maxTokens: event.currentTarget.value })}
            />
          </div>
          <details>
            <summary>{t.ownTools}</summary>
            <TextArea
              label={t.ownToolsLabel}
              class="code"
              rows={5}
              spellcheck={false}
              aria-invalid={!isToolsText}
              placeholder={`[{ "name": "…", "description": "…", "parameters": { "type": "object" } }]`}
              value={form.ownTools}
              onInput={(event) => setForm({ ownTools: event.currentTarget.value })}
            />
            {!isToolsText && <p class="refused">{t.notTools}</p>}
          </details>
        </form>
        <div class="card talk">
          <ConversationLog conversation={conversation} />
          <TextArea
            label={t.message}
            form="playground-form"
            rows={3}
            value={form.message}
            placeholder={t.placeholder}
            onInput={(event) => setForm({ message: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && ready) send(event)
            }}
          />
          <div class="actions">
            <button type="submit" form="playground-form" class="primary" disabled={!ready}>
              {isRetry ? t.retry : t.send}
            </button>
            <label class="button">
              {form.image === "" ? t.addPicture : t.pictureAdded}
              <input
                type="file"
                class="sr-only"
                accept="image/png,image/jpeg,image/gif,image/webp"
                onChange={(event) => {
                  const file = event.currentTarget.files?.[0]
                  setTooLarge(file !== undefined && file.size > largestPicture)
                  if (file === undefined || file.size > largestPicture) return setForm({ image: "" })
                  return void readPicture(file).then((image) => setForm({ image }), () => setForm({ image: "" }))
                }}
              />
            </label>
            {conversation.running && <button type="button" onClick={stopReply}>{t.stop}</button>}
            <span class="hint">{t.sendHint}</span>
            {tooLarge && <span class="refused">{t.pictureTooLarge}</span>}
          </div>
        </div>
      </div>
      {code && <Code prompt={promptOf(form, conversation.turns)} />}
      {conversation.reasoning !== "" && <Reasoning text={conversation.reasoning} />}
      {conversation.rounds.length > 0 && <RawFrames rounds={conversation.rounds} />}
    </>
  )
}
