"""A model service of somebody else, in plain FastAPI; the three lines that attach the recorder are numbered."""

from fastapi import FastAPI, HTTPException

from probes import attach, stage  # 1

app = FastAPI()
attach(app, service="digits")  # 2


@app.get("/digits/{text}")
async def digits(text: str) -> dict[str, int]:
    """Count digits; the text "none" has no answer."""
    with stage("digits.count", characters=len(text)):  # 3
        if text == "none":
            raise HTTPException(404)
        if text == "broken":
            raise RuntimeError("the model is broken")
        return {"digits": sum(character.isdigit() for character in text)}


@app.get("/sync/{text}")
def digits_on_a_thread(text: str) -> dict[str, int]:
    """Count digits in a synchronous route, which FastAPI runs on a thread."""
    with stage("digits.thread", characters=len(text)) as running:
        count = sum(character.isdigit() for character in text)
        running.set(found=count)
        return {"digits": count}
