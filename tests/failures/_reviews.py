"""Long reviews that no two programs share and that the contract takes."""

from __future__ import annotations

import random

SENTENCES = (
    "酒店位置在市中心，出门走几步就是地铁站",
    "前台小姐办手续很快，还帮忙拿了行李",
    "房间比照片上的小一点，但是打扫得干净",
    "晚上隔壁装修到九点多，打电话投诉也没有用",
    "早餐花样多，豆浆是现磨的，油条炸得有些老",
    "空调声音偏大，第二天换了一间才睡得安稳",
    "浴室的水忽冷忽热，毛巾有洗不掉的黄印",
    "书的纸张薄，透过去能看见背面的字",
    "作者前三章讲得清楚，后面越写越乱，例子也旧",
    "笔记本的键盘手感软，风扇一开就呼呼作响",
    "屏幕颜色偏蓝，调了半天总算顺眼一些",
    "电池充满能用五个小时，看电影就短得多",
    "快递员把箱子扔在门口，连电话都没打",
    "客服让我拍照片发过去，等了三天没有回音",
    "价钱比专卖店便宜两百块，发票也开了",
    "总的说来对得起这个价，朋友来我还会推荐",
)


def review(rng: random.Random, characters: int) -> str:
    """Return a review of many sentences, no two in the same order.

    Args:
        rng: Draws the order.
        characters: Its length.
    """
    told: list[str] = []
    while sum(map(len, told)) + len(told) < characters:
        told += rng.sample(SENTENCES, len(SENTENCES))
    return "，".join(told)[:characters]
