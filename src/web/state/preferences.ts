/**
 * Language and theme, as the person at the page chose them. Nothing else is kept in the browser.
 */
import * as Atom from "effect/reactivity/Atom"
import { en } from "../texts/en.ts"
import type { Texts } from "../texts/en.ts"
import { registry, useAtom } from "./registry.ts"

export const languages = { en: "English", zh: "中文" } as const
export const themes = ["system", "light", "dark"] as const

export type Language = keyof typeof languages
export type Theme = (typeof themes)[number]

const stored = (name: string): string | null => {
  try {
    return localStorage.getItem(`model-gateway.${name}`)
  } catch {
    return null
  }
}

const store = (name: string, value: string): void => {
  try {
    localStorage.setItem(`model-gateway.${name}`, value)
  } catch {
    // The browser keeps nothing: the choice holds for this page.
  }
}

const isLanguage = (value: string): value is Language => Object.hasOwn(languages, value)
const isTheme = (value: string | null): value is Theme => themes.some((theme) => theme === value)

/** What the page is written in. */
export const languageAtom = Atom.keepAlive(Atom.make<Language>("en"))
const textsAtom = Atom.keepAlive(Atom.make<Texts>(en))

export const themeAtom = Atom.keepAlive(Atom.make<Theme>("system"))

/** The texts of the chosen language. */
export const useTexts = (): Texts => useAtom(textsAtom)

/** The same outside a view. */
export const texts = (): Texts => registry.get(textsAtom)

/** Changes the language; others than English are loaded first. */
export const chooseLanguage = async (language: Language): Promise<void> => {
  const next = language === "en" ? en : (await import("../texts/zh.ts")).zh
  registry.set(textsAtom, next)
  registry.set(languageAtom, language)
  document.documentElement.lang = language
  store("language", language)
}

export const chooseTheme = (theme: Theme): void => {
  registry.set(themeAtom, theme)
  document.documentElement.dataset["theme"] = theme
  store("theme", theme)
}

/** Takes up what was chosen before, or else what the browser asks for. */
export const restorePreferences = async (): Promise<void> => {
  const theme = stored("theme")
  if (isTheme(theme)) chooseTheme(theme)
  const wanted = stored("language") ?? navigator.language.slice(0, 2)
  if (isLanguage(wanted) && wanted !== "en") await chooseLanguage(wanted)
}
