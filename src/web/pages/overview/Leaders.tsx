/**
 * The keys and the models that cost most today, or are used most where there are no prices.
 */
import { Section } from "../../parts/Heading.tsx"
import { useReads } from "../../parts/Loaded.tsx"
import { useReread } from "../../state/live.ts"
import { useValue } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { topOf, TopTable } from "../nouns/Top.tsx"
import { mostShown, readTodayEvery, useToday } from "./today.ts"

const Leading = ({ by, name }: { readonly by: "key" | "model"; readonly name: string }) => {
  const { usage: u } = useTexts()
  const usage = useToday(by)
  useReread(usage, readTodayEvery)
  const today = useValue(usage)
  if (today === undefined) return null
  const rows = topOf(today.rows, by, today.currency === null ? "total_tokens" : "cost", mostShown)
  return (
    <TopTable
      by={by}
      name={name}
      currency={today.currency}
      rows={rows}
      linkOf={({ value }) => by === "key" && u.specialKeys(value) !== undefined ? undefined : linkTo(`${by}s`, value)}
    />
  )
}

export const Leaders = () => {
  const { common, overview: t } = useTexts()
  const [keys, models] = [useToday("key"), useToday("model")]
  const hasAny = (useValue(keys)?.rows.length ?? 0) > 0
  const { failure } = useReads([keys, models])
  if (!hasAny) return failure === null ? null : <Section name={t.today}>{failure}</Section>
  return (
    <Section name={t.today}>
      {failure}
      <div class="halves">
        <Leading by="key" name={common.pages.keys} />
        <Leading by="model" name={common.pages.models} />
      </div>
    </Section>
  )
}
